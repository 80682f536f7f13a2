"""Delta log stores that no concurrent writer can make lose a commit: Java sources, compilation."""
