package fanline;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Observable;
import io.reactivex.rxjava3.schedulers.Schedulers;
import io.reactivex.rxjava3.subjects.AsyncSubject;
import io.reactivex.rxjava3.subjects.BehaviorSubject;
import io.reactivex.rxjava3.subjects.PublishSubject;
import io.reactivex.rxjava3.subjects.ReplaySubject;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;

/** Every load, by its name in the benchmark. */
final class Loads {
    private Loads() {}

    static Load named(String name) {
        return switch (name) {
            case "subject" -> new FanOut(PublishSubject::create, false, 0);
            case "subject-three-classes" -> new FanOut(PublishSubject::create, true, 0);
            case "subject-serialized" ->
                    new FanOut(() -> PublishSubject.<Integer>create().toSerialized(), false, 0);
            // The initial value is one more.
            case "behavior" -> new FanOut(() -> BehaviorSubject.createDefault(0), false, 1);
            case "all" -> new FanOut(ReplaySubject::create, false, 0);
            case "one" -> new FanOut(() -> ReplaySubject.createWithSize(1), false, 0);
            case "many" -> new FanOut(() -> ReplaySubject.createWithSize(5), false, 0);
            case "within" ->
                    new FanOut(
                            () ->
                                    ReplaySubject.createWithTime(
                                            5, TimeUnit.SECONDS, Schedulers.computation()),
                            false,
                            0);
            case "many-within" ->
                    new FanOut(
                            () ->
                                    ReplaySubject.createWithTimeAndSize(
                                            5, TimeUnit.SECONDS, Schedulers.computation(), 5),
                            false,
                            0);
            case "async" -> new FanOut(AsyncSubject::create, false, FanOut.ONLY_THE_LAST);
            case "visit-subject" -> new Visit(PublishSubject::create, 1);
            case "visit-behavior" -> new Visit(() -> BehaviorSubject.createDefault(0), 2);
            case "visit-one" -> new Visit(() -> ReplaySubject.createWithSize(1), 2);
            case "new-thread" ->
                    counted(
                            items ->
                                    Observable.fromIterable(items)
                                            .subscribeOn(Schedulers.newThread())
                                            .count()
                                            .blockingGet());
            case "observe-on-fused" ->
                    counted(
                            items ->
                                    Observable.range(0, items.size())
                                            .observeOn(Schedulers.computation())
                                            .count()
                                            .blockingGet());
            // `hide` prevents fusion with the queue, as for any source other than a range.
            case "observe-on" ->
                    counted(
                            items ->
                                    Observable.range(0, items.size())
                                            .hide()
                                            .observeOn(Schedulers.computation())
                                            .count()
                                            .blockingGet());
            case "observe-on-flowable" ->
                    counted(
                            items ->
                                    Flowable.range(0, items.size())
                                            .observeOn(Schedulers.computation())
                                            .count()
                                            .blockingGet());
            default -> throw new IllegalArgumentException("no load named " + name);
        };
    }

    /** A chain that counts its items on another thread while the caller waits for the count. */
    private static Load counted(Function<List<Integer>, Long> chain) {
        return (messages, subscribers) -> {
            Integer[] items = new Integer[messages];
            Arrays.setAll(items, Integer::valueOf);
            List<Integer> list = Arrays.asList(items);
            return new Load.Repetition() {
                private long count;

                @Override
                public void run() {
                    count = chain.apply(list);
                }

                @Override
                public void check() {
                    Load.expect(count, messages);
                }
            };
        };
    }
}
