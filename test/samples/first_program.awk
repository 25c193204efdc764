# The README's first program: the first block of C++ in it.
/^```cpp$/ { inside = 1; next }
/^```$/ && inside { exit }
inside { print }
