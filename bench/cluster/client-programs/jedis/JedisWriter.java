// Jedis appends numbers to a list until its input ends. Words: plain or cluster, ports, key.

import com.google.gson.Gson;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.providers.PooledConnectionProvider;

public class JedisWriter {
  static class Result {
    int written = 0;
    List<Integer> refused = new ArrayList<>();
    Map<String, Integer> errors = new HashMap<>();
    double longestGapMs = 0;
  }

  static volatile boolean isOver = false;

  public static void main(String[] words) throws Exception {
    Set<HostAndPort> nodes = new HashSet<>();
    for (String port : words[1].split(",")) {
      nodes.add(new HostAndPort("127.0.0.1", Integer.parseInt(port)));
    }
    var config = DefaultJedisClientConfig.builder().build();
    var patience = Duration.ofSeconds(20);
    var first = new HostAndPort("127.0.0.1", Integer.parseInt(words[1].split(",")[0]));
    UnifiedJedis client =
        words[0].equals("cluster")
            ? new UnifiedJedis(nodes, config, 50, patience)
            : new UnifiedJedis(new PooledConnectionProvider(first, config), 50, patience);
    Thread end = new Thread(JedisWriter::waitForEnd);
    end.setDaemon(true);
    end.start();
    System.out.println(new Gson().toJson(write(client, words[2])));
    System.exit(0);
  }

  static void waitForEnd() {
    try {
      System.in.readAllBytes();
    } catch (java.io.IOException error) {
      // The other end is gone: that is the end, too.
    }
    isOver = true;
  }

  static Result write(UnifiedJedis client, String key) throws InterruptedException {
    Result out = new Result();
    long last = System.nanoTime();
    for (int n = 0; !isOver; n++) {
      out.written++;
      try {
        client.rpush(key, String.valueOf(n));
        long now = System.nanoTime();
        out.longestGapMs = Math.max(out.longestGapMs, (now - last) / 1e6);
        last = now;
      } catch (RuntimeException error) {
        out.errors.merge(error.getClass().getSimpleName() + ": " + error.getMessage(), 1, Integer::sum);
        out.refused.add(n);
        Thread.sleep(20);
      }
    }
    return out;
  }
}
