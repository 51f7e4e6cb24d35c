package fanline;

import io.reactivex.rxjava3.core.Observable;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.function.LongUnaryOperator;

/**
 * RxJava under the loads of `fanline-bench`, one kind of load per process, so that the JIT compiler
 * sees one class of subject.
 *
 * <p>The argument is the name of a load. The program prints a line with its versions. Then each line
 * of input, "messages subscribers nanos repetitions", starts one turn: at least one repetition, until
 * the measured time or the number of repetitions is reached. The answer is a line with a pair
 * "nanos:bytes" per repetition: its duration, and the bytes that the emitting thread has allocated.
 * The program ends with its input, and exits with a stack trace if a subscriber has not received the
 * expected values.
 */
public final class Rival {
    private Rival() {}

    public static void main(String[] arguments) throws Exception {
        Load load = Loads.named(arguments[0]);
        // The version is only in the jar's name.
        String jar = Observable.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        System.out.printf(
                "%s, %s %s%n",
                jar.substring(jar.lastIndexOf('/') + 1, jar.lastIndexOf('.')),
                System.getProperty("java.vm.name"),
                System.getProperty("java.vm.version"));
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.trim().split(" ");
            System.out.println(
                    turn(
                            load,
                            Integer.parseInt(words[0]),
                            Integer.parseInt(words[1]),
                            Long.parseLong(words[2]),
                            Integer.parseInt(words[3])));
        }
    }

    private static String turn(
            Load load, int messages, int subscribers, long budgetNanos, int repetitionsMax) {
        com.sun.management.ThreadMXBean threads =
                (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        LongUnaryOperator allocatedBytes = threads::getThreadAllocatedBytes;
        long self = Thread.currentThread().getId();
        StringBuilder answer = new StringBuilder();
        long total = 0;
        int repetitions = 0;
        do {
            Load.Repetition repetition = load.prepare(messages, subscribers);
            long bytes = allocatedBytes.applyAsLong(self);
            long start = System.nanoTime();
            repetition.run();
            long nanos = System.nanoTime() - start;
            bytes = allocatedBytes.applyAsLong(self) - bytes;
            repetition.check();
            answer.append(nanos).append(':').append(bytes).append(' ');
            total += nanos;
            repetitions += 1;
        } while (total < budgetNanos && repetitions < repetitionsMax);
        return answer.toString().trim();
    }
}
