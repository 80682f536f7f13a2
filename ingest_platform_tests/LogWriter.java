package ingest.platform.tests;

import io.delta.storage.LogStore;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/**
 * Writes through a LogStore on command, one line in, one line out, until stdin ends.
 *
 * Arguments: class of the LogStore, then key=value settings of Hadoop.
 * In: "URI|PAYLOAD|LINES|BREAK_AFTER"; BREAK_AFTER is the line at which the iterator fails, or -1.
 * Out: "> committed", "> exists" or "> error CLASS: MESSAGE".
 */
public class LogWriter {

  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    for (int i = 1; i < args.length; i++) {
      int at = args[i].indexOf('=');
      conf.set(args[i].substring(0, at), args[i].substring(at + 1));
    }
    Constructor make = Class.forName(args[0]).getConstructor(new Class[] {Configuration.class});
    LogStore store = (LogStore) make.newInstance(new Object[] {conf});
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] f = line.split("\\|");
      Iterator lines = new Lines(f[1], Integer.parseInt(f[2]), Integer.parseInt(f[3]));
      System.out.println("> " + write(store, new Path(f[0]), lines, conf));
      System.out.flush();
    }
    System.exit(0);
  }

  private static String write(LogStore store, Path path, Iterator lines, Configuration conf) {
    try {
      store.write(path, lines, Boolean.FALSE, conf);
      return "committed";
    } catch (FileAlreadyExistsException e) {
      return "exists";
    } catch (Throwable e) {
      return "error " + e.getClass().getName() + ": " + String.valueOf(e.getMessage()).replace('\n', ' ');
    }
  }

  /** The same line again and again; fails at a given one, as a broken action would. */
  private static class Lines implements Iterator {
    private final String line;
    private final int count;
    private final int breakAfter;
    private int done = 0;

    Lines(String line, int count, int breakAfter) {
      this.line = line;
      this.count = count;
      this.breakAfter = breakAfter;
    }

    public boolean hasNext() {
      return done < count;
    }

    public Object next() {
      if (done == breakAfter) throw new IllegalStateException("broken action");
      done++;
      return line;
    }

    public void remove() {
      throw new UnsupportedOperationException();
    }
  }
}
