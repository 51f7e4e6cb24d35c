//! The operators of RxJava 3 and Rx.NET, with some names of RxJS, and their names in Fanline.
//!
//! The left column has the other libraries' names in lower camel case. "No" means that there is no such
//! operator, and says what to use. Operators that only convert between RxJava's kinds of sources (`Single`,
//! `Maybe`, `Completable`, `Flowable`) are left out: an observable of one value or none takes their place.
//! So are the names of forms with other arguments or results, such as `zipArray`, `startWithItem`, and
//! `firstStage`; they are in the row without the suffix. For `…OrError`, put
//! [`switch_if_empty`](crate::CombineExt::switch_if_empty) with [`throw`](crate::throw) behind the operator; for
//! `…OrDefault`, [`default_if_empty`](crate::ObservableExt::default_if_empty).
//!
//! | Rx | Fanline |
//! | --- | --- |
//! | **Create** | |
//! | `just`, `return`, `of` | [`of`](crate::of) |
//! | `from`, `fromIterable`, `fromArray`, `fromStream`, `toObservable` | [`from_iter`](crate::from_iter), [`try_from_iter`](crate::try_from_iter) |
//! | `range`, `intervalRange` | [`range`](crate::range()); `intervalRange` is [`interval`](crate::interval) with [`take`](crate::ObservableExt::take) |
//! | `empty` | [`empty`](crate::empty) |
//! | `never` | [`never`](crate::never()) |
//! | `defer` | [`defer`](crate::defer) |
//! | `generate` | [`generate`](crate::generate) |
//! | `error`, `throw` | [`throw`](crate::throw) |
//! | `create`, `unsafeCreate`, `fromPublisher` | [`create`](crate::create()), or an implementation of [`Observable`](crate::Observable) |
//! | `fromCallable`, `fromSupplier`, `fromAction`, `fromRunnable`, `start`, `toAsync` | [`defer`](crate::defer) of [`of`](crate::of); for several values [`from_fn`](crate::from_fn) |
//! | `fromFuture`, `fromCompletionStage`, `fromAsync`, `startAsync`, `deferAsync` | [`from_future`](crate::from_future), [`try_from_future`](crate::try_from_future) |
//! | `fromAsyncEnumerable`, async streams | [`from_stream`](crate::from_stream), [`try_from_stream`](crate::try_from_stream) |
//! | `fromEvent`, `fromEventPattern` | [`create`](crate::create()) with the registration; its guard removes the handler |
//! | `interval`, `timer` | [`interval`](crate::interval) and [`interval_on`](crate::interval_on), [`timer`](crate::timer) and [`timer_on`](crate::timer_on) |
//! | `using` | [`using`](crate::using) |
//! | `if`, `iif` | [`if_then`](crate::if_then) |
//! | `case` | [`case`](crate::case) |
//! | `while`, `doWhile`, `for` | [`while_do`](crate::while_do), [`do_while`](crate::CombineExt::do_while); `for` is [`from_iter`](crate::from_iter) with [`concat_map`](crate::CombineExt::concat_map) |
//! | `UnicastSubject` | [`unicast`](crate::operators::unicast) |
//! | **Transform** | |
//! | `map`, `select`; `mapTo` | [`map`](crate::ObservableExt::map), [`map_to`](crate::ObservableExt::map_to) |
//! | `mapOptional`, `mapNotNull`, `ofType`, `cast` | [`filter_map`](crate::ObservableExt::filter_map) |
//! | `scan`, `scanWith` | [`scan`](crate::ObservableExt::scan) |
//! | `enumerate`, `select` with an index | [`enumerate`](crate::ObservableExt::enumerate) |
//! | `flatMap`, `mergeMap`, `selectMany` | [`flat_map`](crate::CombineExt::flat_map), [`flat_map_with`](crate::CombineExt::flat_map_with) |
//! | `flatMapIterable`, `flatMapStream`, and the same with `concatMap` | [`flat_map_iter`](crate::ObservableExt::flat_map_iter) |
//! | `flatMapSingle`, `flatMapMaybe`, `flatMapCompletable`, and the same with `concatMap` and `switchMap` | the forms without a suffix, because every source is an observable |
//! | `concatMap`, `concatMapEager` | [`concat_map`](crate::CombineExt::concat_map), [`concat_map_eager`](crate::CombineExt::concat_map_eager) |
//! | `switchMap`, `flatMapLatest` | [`switch_map`](crate::CombineExt::switch_map) |
//! | `exhaustMap` | [`exhaust_map`](crate::CombineExt::exhaust_map) |
//! | `parallel`, `flatMap` on a scheduler | [`flat_map_on`](crate::CombineExt::flat_map_on) |
//! | `expand` | [`expand`](crate::CombineExt::expand) |
//! | `manySelect` | no: [`replay`](crate::ObservableExt::replay) the source, and [`map`](crate::ObservableExt::map) each value to a [`skip`](crate::ObservableExt::skip) of it |
//! | `buffer(count)`, `buffer(count, skip)` | [`buffer_count`](crate::ObservableExt::buffer_count), [`buffer_count_every`](crate::ObservableExt::buffer_count_every) |
//! | `buffer(time)`, `buffer(time, count)` | [`buffer_time`](crate::TimeExt::buffer_time), [`buffer_time_or_count`](crate::TimeExt::buffer_time_or_count) |
//! | `buffer(boundary)` | [`buffer_when`](crate::CombineExt::buffer_when) |
//! | `window(count)` | [`window_count`](crate::ObservableExt::window_count) |
//! | `window(time)`, `window(time, count)` | [`window_time`](crate::TimeExt::window_time), [`window_time_or_count`](crate::TimeExt::window_time_or_count) |
//! | `window(boundary)` | [`window_when`](crate::CombineExt::window_when) |
//! | `buffer(openings, closing)`, `window(openings, closing)`, `bufferToggle`, `windowToggle` | no: [`group_join`](crate::CombineExt::group_join) of the openings with the values |
//! | `window(count, skip)`, `window(time, skip)` | no: [`buffer_count_every`](crate::ObservableExt::buffer_count_every), whose lists may overlap |
//! | `groupBy`, `groupByUntil` | [`group_by`](crate::ObservableExt::group_by), [`group_by_until`](crate::CombineExt::group_by_until) |
//! | `pairwise` | [`pairwise`](crate::ObservableExt::pairwise) |
//! | `materialize`, `dematerialize` | [`materialize`](crate::ObservableExt::materialize), [`dematerialize`](crate::ObservableExt::dematerialize) |
//! | `timestamp`, `timeInterval` | [`timestamp`](crate::ObservableExt::timestamp), [`time_interval`](crate::ObservableExt::time_interval) |
//! | `lift`, `compose`, `to`, `let` | a function that takes and returns `impl Observable` |
//! | `hide`, `asObservable`, `onTerminateDetach` | [`boxed`](crate::ObservableExt::boxed); a source does not reveal its subject, and an observer is dropped at the end |
//! | **Filter** | |
//! | `filter`, `where` | [`filter`](crate::ObservableExt::filter) |
//! | `take(count)`, `limit`, `take(time)` | [`take`](crate::ObservableExt::take), [`take_for`](crate::TimeExt::take_for) |
//! | `skip(count)`, `skip(time)` | [`skip`](crate::ObservableExt::skip), [`skip_for`](crate::TimeExt::skip_for) |
//! | `takeLast(count)`, `takeLast(time)` | [`take_last`](crate::ObservableExt::take_last), [`take_last_for`](crate::TimeExt::take_last_for) |
//! | `skipLast(count)`, `skipLast(time)` | [`skip_last`](crate::ObservableExt::skip_last), [`skip_last_for`](crate::TimeExt::skip_last_for) |
//! | `takeLastBuffer` | [`take_last`](crate::ObservableExt::take_last) with [`collect`](crate::ObservableExt::collect) |
//! | `takeWhile`, `takeUntil(predicate)` | [`take_while`](crate::ObservableExt::take_while), [`take_while_inclusive`](crate::ObservableExt::take_while_inclusive), [`take_until_match`](crate::ObservableExt::take_until_match) |
//! | `takeUntil(observable)`, `skipUntil` | [`take_until`](crate::CombineExt::take_until), [`skip_until`](crate::CombineExt::skip_until) |
//! | `takeUntil(time)`, `skipUntil(time)` | [`take_for`](crate::TimeExt::take_for), [`skip_for`](crate::TimeExt::skip_for) |
//! | `skipWhile` | [`skip_while`](crate::ObservableExt::skip_while) |
//! | `first`, `firstElement`, `firstOrError`, `firstOrDefault` | [`first`](crate::ObservableExt::first), with [`default_if_empty`](crate::ObservableExt::default_if_empty) |
//! | `last`, `lastElement`, `elementAt` | [`last`](crate::ObservableExt::last), [`element_at`](crate::ObservableExt::element_at) |
//! | `single`, `singleElement`, `singleOrDefault` | [`single`](crate::ObservableExt::single) |
//! | `distinct`, `distinct(selector)` | [`distinct`](crate::ObservableExt::distinct), [`distinct_by_key`](crate::ObservableExt::distinct_by_key) |
//! | `distinctUntilChanged` | [`distinct_until_changed`](crate::ObservableExt::distinct_until_changed), [`distinct_until_changed_by`](crate::ObservableExt::distinct_until_changed_by), [`distinct_until_changed_by_key`](crate::ObservableExt::distinct_until_changed_by_key) |
//! | `ignoreElements` | [`ignore_elements`](crate::ObservableExt::ignore_elements) |
//! | `debounce`, `throttleWithTimeout`, Rx.NET's `Throttle`; with a selector | [`debounce`](crate::TimeExt::debounce), [`debounce_with`](crate::CombineExt::debounce_with) |
//! | `throttleFirst`, `throttleLatest`, RxJS's `throttleTime`; with a selector | [`throttle`](crate::TimeExt::throttle) with an [`Edge`](crate::operators::Edge), [`throttle_with`](crate::CombineExt::throttle_with) |
//! | `sample(time)`, `throttleLast`, `audit`; `sample(observable)` | [`sample`](crate::TimeExt::sample), [`sample_when`](crate::CombineExt::sample_when) |
//! | **Combine** | |
//! | `merge`, `mergeWith`, `mergeArray` | [`merge`](crate::CombineExt::merge), of a list [`operators::merge`](crate::operators::merge()) |
//! | `concat`, `concatWith`, `concatArray` | [`concat`](crate::CombineExt::concat), of a list [`operators::concat`](crate::operators::concat()) |
//! | `amb`, `ambWith`, `race` | [`race`](crate::CombineExt::race), of a list [`operators::race`](crate::operators::race()), of an observable of observables [`race_all`](crate::CombineExt::race_all) |
//! | `merge` and `concat` of an observable of observables, `mergeAll`, `concatAll` | [`merge_all`](crate::CombineExt::merge_all), [`concat_all`](crate::CombineExt::concat_all) |
//! | `concatEager` | [`concat_map_eager`](crate::CombineExt::concat_map_eager) with `Clone::clone` |
//! | `switch`, `switchOnNext`, `switchAll` | [`switch_all`](crate::CombineExt::switch_all) |
//! | `zip`, `zipWith`, `and`, `then`, `when` | [`zip`](crate::CombineExt::zip), [`zip_with`](crate::CombineExt::zip_with), of up to eight [`operators::zip`](crate::operators::zip()) |
//! | `combineLatest`, `combineLatestWith` | [`combine_latest`](crate::CombineExt::combine_latest), [`combine_latest_with`](crate::CombineExt::combine_latest_with), of up to eight [`operators::combine_latest`](crate::operators::combine_latest()) |
//! | `withLatestFrom` | [`with_latest_from`](crate::CombineExt::with_latest_from), [`with_latest_from_with`](crate::CombineExt::with_latest_from_with) |
//! | `mergeDelayError`, `concatDelayError`, `zip` and `combineLatest` with `delayError` | [`merge_delay_error`](crate::CombineExt::merge_delay_error), [`concat_delay_error`](crate::CombineExt::concat_delay_error), [`zip_delay_error`](crate::CombineExt::zip_delay_error), [`combine_latest_delay_error`](crate::CombineExt::combine_latest_delay_error) |
//! | `flatMap` with `delayErrors`, `concatMapDelayError` | [`flat_map_delay_error`](crate::CombineExt::flat_map_delay_error), [`concat_map_delay_error`](crate::CombineExt::concat_map_delay_error) |
//! | `switchMapDelayError`, `switchOnNextDelayError`, `concatMapEagerDelayError`, `concatEagerDelayError` | no: [`materialize`](crate::ObservableExt::materialize) the inner observables |
//! | `join`, `groupJoin` | [`join`](crate::CombineExt::join), [`group_join`](crate::CombineExt::group_join) |
//! | `startWith`, `prepend`; `endWith`, `append` | [`start_with`](crate::ObservableExt::start_with), [`end_with`](crate::ObservableExt::end_with) |
//! | `forkJoin` | [`operators::zip`](crate::operators::zip()) of the sources, each with [`last`](crate::ObservableExt::last) |
//! | `sequenceEqual` | [`sequence_equal`](crate::CombineExt::sequence_equal) |
//! | `defaultIfEmpty`, `switchIfEmpty` | [`default_if_empty`](crate::ObservableExt::default_if_empty), [`switch_if_empty`](crate::CombineExt::switch_if_empty) |
//! | **Errors and repetition** | |
//! | `catch`, `onErrorResumeNext(fallback)`, `onErrorResumeWith` | [`catch`](crate::CombineExt::catch) |
//! | Rx.NET's `OnErrorResumeNext` | [`on_error_complete`](crate::ObservableExt::on_error_complete), then [`concat`](crate::CombineExt::concat) |
//! | `onErrorReturn`, `onErrorReturnItem`, `onErrorComplete` | [`on_error_return`](crate::ObservableExt::on_error_return), [`on_error_complete`](crate::ObservableExt::on_error_complete) |
//! | `retry(count)`, `retryWhen` | [`retry`](crate::CombineExt::retry), [`retry_when`](crate::CombineExt::retry_when) |
//! | `retry` with a delay | [`retry_with`](crate::CombineExt::retry_with) a [`Backoff`](crate::operators::Backoff) |
//! | `retry(predicate)`, `retryUntil` | [`retry_when`](crate::CombineExt::retry_when) with [`take_while`](crate::ObservableExt::take_while) |
//! | `repeat`, `repeatWhen`, `repeatUntil` | [`repeat`](crate::CombineExt::repeat), [`repeat_when`](crate::CombineExt::repeat_when), [`do_while`](crate::CombineExt::do_while) |
//! | **Time** | |
//! | `delay`, `delay(selector)`, `delaySubscription` | [`delay`](crate::TimeExt::delay), [`delay_with`](crate::CombineExt::delay_with), [`delay_subscription`](crate::TimeExt::delay_subscription) |
//! | `timeout`, `timeout(fallback)` | [`timeout`](crate::TimeExt::timeout), [`timeout_with`](crate::TimeExt::timeout_with) |
//! | `timeout(selector)` | no: [`race`](crate::CombineExt::race) or [`take_until`](crate::CombineExt::take_until) with an observable of your own |
//! | **Fold** | |
//! | `reduce`, `aggregate`, `reduceWith` | [`reduce`](crate::ObservableExt::reduce), with a seed [`fold`](crate::ObservableExt::fold) |
//! | `count`, `longCount`, `sum`, `average`, `min`, `max`, `minBy`, `maxBy` | [`count`](crate::ObservableExt::count), [`sum`](crate::ObservableExt::sum), [`average`](crate::ObservableExt::average), [`min`](crate::ObservableExt::min), [`max`](crate::ObservableExt::max), [`min_by`](crate::ObservableExt::min_by), [`max_by`](crate::ObservableExt::max_by) |
//! | `toList`, `toArray`, `collect`, `collectInto` | [`collect`](crate::ObservableExt::collect) |
//! | `toSortedList`, `sorted` | [`sorted`](crate::ObservableExt::sorted), [`sorted_by`](crate::ObservableExt::sorted_by) |
//! | `toMap`, `toDictionary`; `toMultimap`, `toLookup` | [`to_map`](crate::ObservableExt::to_map), [`to_multimap`](crate::ObservableExt::to_multimap) |
//! | `all`, `any`, `contains`, `isEmpty` | [`all`](crate::ObservableExt::all), [`any`](crate::ObservableExt::any), [`contains`](crate::ObservableExt::contains), [`is_empty`](crate::ObservableExt::is_empty) |
//! | **Multicast** | |
//! | `publish`, `connect` | [`publish`](crate::ObservableExt::publish), [`connect`](crate::operators::Connectable::connect) |
//! | `publish(selector)`, `replay(selector)` | no: [`share`](crate::ObservableExt::share), and chains of its clones |
//! | `replay`, `multicast` | [`replay`](crate::ObservableExt::replay), [`multicast`](crate::ObservableExt::multicast) |
//! | `refCount`, `refCount(time)`, `autoConnect` | [`ref_count`](crate::operators::Connectable::ref_count), [`ref_count_with_grace`](crate::operators::Connectable::ref_count_with_grace), [`auto_connect`](crate::operators::Connectable::auto_connect) |
//! | `share`, `shareReplay`, `cache` | [`share`](crate::ObservableExt::share), [`share_replay`](crate::ObservableExt::share_replay) |
//! | `publishLast` | [`multicast`](crate::ObservableExt::multicast) through an [`AsyncSubject`](crate::AsyncSubject) |
//! | **Threads** | |
//! | `observeOn`, `rebatchRequests` | [`observe_on`](crate::ObservableExt::observe_on), [`observe_on_with`](crate::ObservableExt::observe_on_with) |
//! | `subscribeOn` | [`subscribe_on`](crate::ObservableExt::subscribe_on) |
//! | `unsubscribeOn` | no: a guard never blocks; drop it on the thread of your choice |
//! | `serialize`, `synchronize` | [`serialize`](crate::ObservableExt::serialize), for an observer [`Serialized`](crate::operators::Serialized) |
//! | **Observe and leave** | |
//! | `do`, `tap`, `doOnNext`, `doOnError`, `doOnComplete`, `doOnEach`, `doOnTerminate` | [`tap`](crate::ObservableExt::tap), [`tap_with`](crate::ObservableExt::tap_with) |
//! | `doAfterNext`, `doAfterTerminate` | no: put [`tap`](crate::ObservableExt::tap) into the observer, or use [`finalize`](crate::ObservableExt::finalize) |
//! | `doOnSubscribe`, `doOnDispose`, `doOnLifecycle` | [`on_subscribe`](crate::ObservableExt::on_subscribe), [`on_dispose`](crate::ObservableExt::on_dispose) |
//! | `doFinally`, `finally`, `finalize` | [`finalize`](crate::ObservableExt::finalize) |
//! | `subscribe`, `forEach`, `forEachWhile`, `forEachAsync`, `safeSubscribe`, `subscribeSafe` | [`subscribe`](crate::Observable::subscribe), [`subscribe_with`](crate::Observable::subscribe_with), [`subscribe_owned`](crate::ObservableExt::subscribe_owned), [`subscribe_local`](crate::ObservableExt::subscribe_local) |
//! | `firstAsync`, `lastAsync`, `toFuture`, `toTask`, `await`, `getAwaiter`, `runAsync` | [`first_value`](crate::ObservableExt::first_value), [`last_value`](crate::ObservableExt::last_value) |
//! | `blockingFirst`, `blockingLast`, `blockingSingle`, `wait` | [`first_value`](crate::ObservableExt::first_value), [`last_value`](crate::ObservableExt::last_value), each with `blocking_wait` |
//! | `blockingMostRecent`, `mostRecent` | [`most_recent`](crate::ObservableExt::most_recent), or [`Source::latest`](crate::Source::latest) of a behavior subject |
//! | `blockingIterable`, `blockingStream`, `blockingForEach`, `toEnumerable`; `blockingLatest`, `latest` | [`into_stream`](crate::ObservableExt::into_stream) with [`Unbounded`](crate::stream::Unbounded) or [`Latest`](crate::stream::Latest), then [`blocking_iter`](crate::stream::IntoStream::blocking_iter) |
//! | `blockingNext`, `next`, `chunkify`, `collect(iterable)` | no: [`blocking_iter`](crate::stream::IntoStream::blocking_iter) with another [policy](crate::stream#choose-a-policy) |
//! | `toFlowable(strategy)`, `toAsyncEnumerable` | [`into_stream`](crate::ObservableExt::into_stream), [`try_into_stream`](crate::ObservableExt::try_into_stream) |
//! | `onBackpressureBuffer`, `onBackpressureDrop`, `onBackpressureLatest` | the [policy](crate::stream#choose-a-policy) of a stream, or [`observe_on_with`](crate::ObservableExt::observe_on_with) a [`Bound`](crate::scheduler::Bound) |
//! | `toEvent`, `toEventPattern` | no: subscribe the handler |
//! | `toQueryable`, `remotable` | no: closures stay in the process; the bridge of `fanline-server` carries values |
//! | `test` | [`Recorder`](crate::testing::Recorder) |
//! | `blockingSubscribe` | no: [`observe_on`](crate::ObservableExt::observe_on) a [manual event loop](crate::scheduler::EventLoop::manual) |
