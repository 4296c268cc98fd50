import 'uplot/dist/uPlot.min.css';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { dayName, hourName } from '../../data/format/format.ts';

export type Series = {
  readonly name: string;
  /** A value for each day or hour. */
  readonly values: readonly number[];
  readonly color?: string;
};

/** Colors that differ enough, on light and on dark. */
const COLORS = ['#2f6fde', '#c2571a', '#1f8a5b', '#9a4fc9', '#b3872b', '#7a8494'];
const colorOf = ({ color }: Series, at: number): string => color ?? COLORS[at % COLORS.length] ?? '';

type BarsProps = {
  readonly label: string;
  /** Days, or hours as `2026-01-31T14:00`, separated by commas. An equal text means an unchanged chart. */
  readonly times: string;
  readonly series: readonly Series[];
  readonly show: (value: number) => string;
  /** Called with the index of the clicked day or hour. */
  readonly onPick: (at: number) => void;
};

const isHour = (time: string): boolean => time.includes('T');
const timeName = (time: string): string => (isHour(time) ? hourName(time) : dayName(time));

/** Where the mouse or the keyboard is: which time, and how far from the left. */
type Pointed = { readonly at: number; readonly left: number };

/** Values of each day or hour as stacked bars. The mouse and the keyboard show the figures of one bar, and open it. */
export function Bars({ label, times, series, show, onPick }: BarsProps) {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef<Chart>();
  const [pointed, point] = useState<Pointed>();
  /** A new function does not redraw the chart. */
  const pick = useRef(onPick);
  pick.current = onPick;
  useEffect(() => {
    if (!box.current) return undefined;
    drawn.current = draw(box.current, {
      times: times.split(','),
      series,
      show,
      point,
      pick: (at) => pick.current(at),
    });
    return drawn.current.end;
  }, [times, series, show]);
  const time = pointed && times.split(',')[pointed.at];
  return (
    <figure>
      <div class="plot">
        <div ref={box} class="chart" role="img" aria-label={label} />
        {pointed && time && <Tip time={time} pointed={pointed} series={series} show={show} />}
      </div>
      <Keys
        times={times.split(',')}
        series={series}
        show={show}
        point={(at) => point(at === undefined ? undefined : { at, left: drawn.current?.leftOf(at) ?? 0 })}
        pick={onPick}
      />
      <figcaption>
        <ul class="legend">
          {series.map((each, at) => (
            <li key={at}>
              <Name of={each} at={at} />
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

type KeysProps = Pick<BarsProps, 'series' | 'show'> & {
  readonly times: readonly string[];
  readonly point: (at: number | undefined) => void;
  readonly pick: (at: number) => void;
};

/** The times for the keyboard: the arrows go from one to the next, Enter opens it. It is seen while it has the focus. */
function Keys({ times, series, show, point, pick }: KeysProps) {
  const last = times.length - 1;
  const [chosen, choose] = useState<number>();
  const at = Math.min(chosen ?? last, last);
  const time = times[at] ?? '';
  const figures = series.map(({ name, values }) => `${name} ${show(values[at] ?? 0)}`);
  return (
    <input
      type="range"
      class="unseen"
      aria-label={isHour(time) ? 'Hour of the chart' : 'Day of the chart'}
      aria-valuetext={`${timeName(time)}: ${figures.join(', ')}`}
      min={0}
      max={last}
      value={at}
      onInput={({ currentTarget }) => {
        choose(Number(currentTarget.value));
        point(Number(currentTarget.value));
      }}
      onFocus={() => point(at)}
      onBlur={() => point(undefined)}
      onKeyDown={({ key }) => key === 'Enter' && pick(at)}
    />
  );
}

const Name = ({ of, at }: { of: Series; at: number }) => (
  <>
    <span class="swatch" style={{ background: colorOf(of, at) }} /> {of.name}
  </>
);

type TipProps = Pick<BarsProps, 'series' | 'show'> & { readonly time: string; readonly pointed: Pointed };

/** The figures of the time under the mouse, on the side that has room. */
const Tip = ({ time, pointed: { at, left }, series, show }: TipProps) => (
  <div class="tip" role="tooltip" style={left < 0.5 ? { left: part(left) } : { right: part(1 - left) }}>
    <b>{timeName(time)}</b>
    <ul>
      {series.map((each, place) => (
        <li key={place}>
          <span>
            <Name of={each} at={place} />
          </span>
          <span class="value">{show(each.values[at] ?? 0)}</span>
        </li>
      ))}
    </ul>
  </div>
);

const part = (share: number): string => `${share * 100}%`;

type Drawn = Pick<BarsProps, 'series' | 'show'> & {
  readonly times: readonly string[];
  readonly point: (pointed: Pointed | undefined) => void;
  readonly pick: (at: number) => void;
};

type Chart = {
  readonly end: () => void;
  /** How far from the left a time is, as a part of the width. */
  readonly leftOf: (at: number) => number;
};

/** Draws until its end is called, and again when the box or the colors of the system change. */
function draw(box: HTMLDivElement, drawn: Drawn): Chart {
  let plot: uPlot | undefined;
  const redraw = () => {
    plot?.destroy();
    plot = new uPlot(optionsOf(box, drawn), dataOf(drawn), box);
  };
  const sizes = new ResizeObserver(redraw);
  sizes.observe(box);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', redraw);
  return {
    end: () => {
      sizes.disconnect();
      scheme.removeEventListener('change', redraw);
      plot?.destroy();
    },
    leftOf: (at) => (plot ? leftIn(plot, at) : 0),
  };
}

const leftIn = (plot: uPlot, at: number): number =>
  (plot.over.offsetLeft + plot.valToPos(at, 'x')) / plot.root.clientWidth;

/** The highest sum first: each bar covers the lower part of the one behind it. */
function dataOf({ times, series }: Drawn): uPlot.AlignedData {
  const sums = times.map(() => 0);
  const stacked = series.map(({ values }) =>
    values.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + value;
      return sums[at] ?? 0;
    }),
  );
  return [times.map((_, at) => at), ...stacked.reverse()];
}

/** The interval between labels under the axis, and the pixels of a label. */
const OF_DAYS = { space: 60, incrs: [1, 2, 7, 14, 28] };
const OF_HOURS = { space: 100, incrs: [1, 2, 3, 6, 12, 24] };

function optionsOf(box: HTMLDivElement, drawn: Drawn): uPlot.Options {
  const { times, series, show } = drawn;
  const { color, borderColor } = getComputedStyle(box);
  const bars = uPlot.paths.bars?.({ size: [0.7, 40] });
  const axis = { stroke: color, grid: { stroke: borderColor }, ticks: { stroke: borderColor } };
  return {
    width: box.clientWidth,
    height: 220,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
    hooks: { ready: [(plot) => follow(plot, drawn)] },
    scales: {
      x: { time: false, range: (_plot, low, high) => [low - 1, high + 1] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        ...(isHour(times[0] ?? '') ? OF_HOURS : OF_DAYS),
        values: (_plot, ticks) => ticks.map((at) => (times[at] ? timeName(times[at]) : '')),
      },
      { ...axis, size: 80, values: (_plot, ticks) => ticks.map(show) },
    ],
    series: [
      {},
      ...series
        .map((each, at) => ({
          fill: colorOf(each, at),
          stroke: colorOf(each, at),
          width: 0,
          points: { show: false },
          ...(bars && { paths: bars }),
        }))
        .reverse(),
    ],
  };
}

/** Reports the time under the mouse, and the one that is pressed. */
function follow(plot: uPlot, { times, point, pick }: Drawn): void {
  const { over } = plot;
  const atOf = ({ clientX }: MouseEvent) => {
    const at = Math.round(plot.posToVal(clientX - over.getBoundingClientRect().left, 'x'));
    return Math.min(times.length - 1, Math.max(0, at));
  };
  over.addEventListener('mousemove', (event) => {
    const at = atOf(event);
    point({ at, left: leftIn(plot, at) });
  });
  over.addEventListener('mouseleave', () => point(undefined));
  over.addEventListener('click', (event) => pick(atOf(event)));
}
