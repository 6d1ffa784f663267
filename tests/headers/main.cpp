// Nothing to run: the test is that every header compiles alone and that all of them link.
int main() {}
