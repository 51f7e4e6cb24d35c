package fanline;

import com.typesafe.config.ConfigFactory;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.stream.SystemMaterializer;

/**
 * Pekko's BroadcastHub under the load of `fanline-bench hubs`.
 *
 * <p>The argument is the number of threads of the dispatcher. The program prints a line with its
 * versions. Then each line of input, "buffer consumers elements", starts one run; the answer is a
 * line with its nanoseconds. The program ends with its input, and exits with a stack trace if a
 * consumer has not received the expected elements.
 */
public final class Rival {
    private Rival() {}

    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        ActorSystem system = ActorSystem.create("rival", ConfigFactory.parseString(config(threads)));
        try {
            System.out.printf(
                    "pekko-stream %s, dispatcher of %d threads, %s %s (%s)%n",
                    org.apache.pekko.Version.current(),
                    threads,
                    System.getProperty("java.vm.name"),
                    System.getProperty("java.vm.version"),
                    System.getProperty("java.vendor"));
            answer(new Lockstep(SystemMaterializer.get(system).materializer()));
        } finally {
            system.terminate();
        }
    }

    private static String config(int threads) {
        return """
                pekko {
                  loglevel = "WARNING"
                  actor.default-dispatcher {
                    executor = "fork-join-executor"
                    fork-join-executor { parallelism-min = %1$d, parallelism-max = %1$d }
                  }
                }
                """
                .formatted(threads);
    }

    private static void answer(Lockstep lockstep) throws Exception {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.trim().split(" ");
            System.out.println(
                    lockstep.run(
                            Integer.parseInt(words[0]),
                            Integer.parseInt(words[1]),
                            Integer.parseInt(words[2])));
        }
    }
}
