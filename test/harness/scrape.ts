/** The answer of `/metrics`: each series as Prometheus names it, and the description of each metric. */
export type Scraped = {
  readonly text: string;
  /** `name{label="value"}` → value. Without a series: 0, as for a counter that has counted nothing. */
  readonly value: (series: string) => number;
  readonly has: (series: string) => boolean;
  /** By name, without the series of histograms. */
  readonly metrics: ReadonlyMap<string, Metric>;
};

type Metric = { type: string; unit: string; help: string; readonly labels: Set<string> };

/** Reads `/metrics` as Prometheus does (exposition formats, "Text-based format"). */
export async function scrape(port: number | undefined): Promise<Scraped> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  if (answer.status !== 200) throw new Error(`/metrics answered ${answer.status}`);
  const text = await answer.text();
  const values = new Map<string, number>();
  const metrics = new Map<string, Metric>();
  for (const line of text.split('\n')) {
    const [, word, name = '', rest = ''] = /^# (\w+) (\w+) (.*)$/.exec(line) ?? [];
    if (word !== undefined) {
      const metric = metrics.get(name) ?? { type: '', unit: '', help: '', labels: new Set<string>() };
      metrics.set(name, metric);
      if (word === 'TYPE') metric.type = rest;
      else if (word === 'UNIT') metric.unit = rest;
      else metric.help = rest;
    } else if (line !== '') readSeries(line, values, metrics);
  }
  return {
    text,
    value: (series) => values.get(series) ?? 0,
    has: (series) => values.has(series),
    metrics,
  };
}

function readSeries(line: string, values: Map<string, number>, metrics: Map<string, Metric>): void {
  const [, series = '', name = '', labels = '', value] = /^((\w+)(?:\{(.*)\})?) (\S+)$/.exec(line) ?? [];
  if (value === undefined) throw new Error(`no series: ${line}`);
  values.set(series, Number(value));
  const metric = metrics.get(name) ?? metrics.get(name.replace(/_(bucket|sum|count)$/, ''));
  if (!metric) throw new Error(`a series without a type: ${line}`);
  for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) if (label !== 'le') metric.labels.add(label);
}
