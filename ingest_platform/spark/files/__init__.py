"""Files of local paths, in Java, as Hadoop makes them but without a process for each."""
