package fanline;

import org.apache.pekko.stream.Attributes;
import org.apache.pekko.stream.Outlet;
import org.apache.pekko.stream.SourceShape;
import org.apache.pekko.stream.stage.AbstractOutHandler;
import org.apache.pekko.stream.stage.GraphStage;
import org.apache.pekko.stream.stage.GraphStageLogic;

/** A source of an array's first values, with less work per element than Pekko's own sources. */
final class Values extends GraphStage<SourceShape<Long>> {
    private final Outlet<Long> out = Outlet.create("Values.out");
    private final SourceShape<Long> shape = SourceShape.of(out);
    private final Long[] values;
    private final int count;

    Values(Long[] values, int count) {
        this.values = values;
        this.count = count;
    }

    @Override
    public SourceShape<Long> shape() {
        return shape;
    }

    @Override
    public GraphStageLogic createLogic(Attributes attributes) {
        return new Logic();
    }

    private final class Logic extends GraphStageLogic {
        private int next;

        Logic() {
            super(shape);
            setHandler(
                    out,
                    new AbstractOutHandler() {
                        @Override
                        public void onPull() {
                            push(out, values[next]);
                            next++;
                            if (next == count) {
                                complete(out);
                            }
                        }
                    });
        }
    }
}
