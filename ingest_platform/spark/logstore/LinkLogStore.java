package ingest.platform;

import io.delta.storage.HDFSLogStore;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.OpenOption;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log on a local path for any number of processes: a commit is one hard link.
 *
 * Delta's default for file: paths, HDFSLogStore, relies on a rename that fails if the target is
 * there. HDFS has one; Hadoop's local file system looks first and then calls rename(2), which
 * replaces: of 400 versions that two JVMs wrote at once, 10 held the data of the writer that was
 * told "conflict", or that both had been told "committed". link(2) looks and creates in one step.
 *
 * Register with spark.delta.logStore.file.impl. Compiled by Janino: no lambdas, no diamonds.
 */
public class LinkLogStore extends HDFSLogStore {

  public LinkLogStore(Configuration initHadoopConf) {
    super(initHadoopConf);
  }

  /**
   * Write a file of the log.
   *
   * @throws FileAlreadyExistsException another writer holds this version.
   * @throws TurnedBackException the commit is automatic, and yields; see YieldGate.
   * @throws IOException the file could not be written, or the disk knows no hard links; this
   *     version is not ours then.
   */
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration hadoopConf)
      throws IOException {
    if (overwrite.booleanValue()) {
      super.write(path, actions, overwrite, hadoopConf);
      return;
    }
    YieldGate.pass(path, hadoopConf);
    java.nio.file.Path target = Paths.get(path.toUri().getPath(), new String[0]);
    java.nio.file.Path folder = target.getParent();
    String name = target.getFileName().toString();
    Files.createDirectories(folder, new FileAttribute[0]);
    java.nio.file.Path draft = folder.resolve("." + name + "." + UUID.randomUUID() + ".tmp");
    try {
      writeDraft(draft, actions);
      // Hadoop verifies a file against the checksum file beside it. One that outlived its version
      // (somebody removed the version) would make ours unreadable.
      Files.deleteIfExists(folder.resolve("." + name + ".crc"));
      publish(draft, target);
    } catch (FileAlreadyExistsException conflict) {
      WinnersChecksum.await(path, hadoopConf);
      throw conflict;
    } finally {
      Files.deleteIfExists(draft);
    }
  }

  /**
   * Files of the log whose names do not come before the path's, in order of their names.
   *
   * Delta asks for the few newest at each look, in every batch, and a folder gives them no sooner
   * than all others. So those are passed by as the bytes they are, and the disk is not asked about
   * them: each batch would be a little slower than the one before.
   *
   * @throws FileNotFoundException there is no such folder.
   */
  public Iterator<FileStatus> listFrom(Path path, Configuration hadoopConf) throws IOException {
    FileSystem fs = path.getFileSystem(hadoopConf);
    List<String> wanted = namesFrom(path);
    Collections.sort(wanted);
    List<FileStatus> found = new ArrayList<FileStatus>();
    for (int i = 0; i < wanted.size(); i++) {
      try {
        found.add(fs.getFileStatus(new Path(path.getParent(), (String) wanted.get(i))));
      } catch (FileNotFoundException gone) {
        continue; // cleaned up, or published, since the folder was read
      }
    }
    return found.iterator();
  }

  private static List<String> namesFrom(Path path) throws IOException {
    String first = path.getName();
    int end = first.indexOf('\0'); // Delta's name before all names, and on no disk
    java.nio.file.Path folder = Paths.get(path.getParent().toUri().getPath(), new String[0]);
    java.nio.file.Path start = folder.resolve(end < 0 ? first : first.substring(0, end));
    List<String> found = new ArrayList<String>();
    try {
      DirectoryStream<java.nio.file.Path> all = Files.newDirectoryStream(folder);
      try {
        Iterator<java.nio.file.Path> files = all.iterator();
        while (files.hasNext()) {
          java.nio.file.Path file = (java.nio.file.Path) files.next();
          if (file.compareTo(start) < 0) continue;
          String name = file.getFileName().toString();
          boolean checksum = name.startsWith(".") && name.endsWith(".crc");
          if (!checksum && name.compareTo(first) >= 0) found.add(name);
        }
      } finally {
        all.close();
      }
    } catch (NoSuchFileException e) {
      throw new FileNotFoundException("no such folder: " + folder);
    } catch (NotDirectoryException e) {
      throw new FileNotFoundException("no folder: " + folder);
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    return found;
  }

  private static void writeDraft(java.nio.file.Path draft, Iterator<String> actions)
      throws IOException {
    FileChannel channel = FileChannel.open(draft,
        new OpenOption[] {StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE});
    try {
      OutputStream out = new java.io.BufferedOutputStream(Channels.newOutputStream(channel), 65536);
      while (actions.hasNext()) {
        out.write(((String) actions.next()).getBytes(StandardCharsets.UTF_8));
        out.write('\n');
      }
      out.flush();
      // Without it a power cut can leave the name without the content: an unreadable table.
      channel.force(true);
    } finally {
      channel.close();
    }
  }

  private static void publish(java.nio.file.Path draft, java.nio.file.Path target)
      throws IOException {
    try {
      Files.createLink(target, draft);
    } catch (FileAlreadyExistsException e) {
      // On NFS the answer to a link that was made can be lost, and the retry finds it made.
      if (!Files.isSameFile(draft, target)) throw e;
    } catch (UnsupportedOperationException e) {
      throw new IOException("cannot commit " + target + ": this file system has no hard links, so"
          + " concurrent writers could overwrite each other. Use another disk, or s3a.", e);
    }
  }
}
