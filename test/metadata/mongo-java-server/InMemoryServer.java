// A mongo-java-server for the tests: it speaks the wire protocol of MongoDB, has change streams but no
// transactions, and keeps everything in memory.
//
//   java -cp <jars> InMemoryServer.java <port>

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

public class InMemoryServer {
  public static void main(String[] args) throws Exception {
    MongoServer server = new MongoServer(new MemoryBackend());
    server.enableOplog();
    server.bind("127.0.0.1", Integer.parseInt(args[0]));
    System.out.println("listening on " + server.getLocalAddress());
    // Ends with the tests, however they end.
    while (System.in.read() >= 0) {}
    System.exit(0);
  }
}
