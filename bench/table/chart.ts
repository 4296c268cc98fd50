import { METERED, type Results, type RowId, type Spread, spreadOf } from './results.ts';

type Panel = { readonly id: RowId; readonly figure: string; readonly title: string };
const PANELS: readonly Panel[] = [
  { id: 'json', figure: 'cpuUs', title: 'JSON call under a spend limit: CPU µs' },
  { id: 'burst', figure: 'cpuUs', title: 'Stream of 80 events: CPU µs' },
  { id: 'rate', figure: 'p99Ms', title: 'p99 at 400 calls a second: ms' },
];
const [WIDTH, LABEL, VALUE, BAR, GAP, HEAD] = [760, 190, 70, 18, 6, 34];

/** A chart of the peers, as SVG: medians as bars, ranges as lines. A bar that would be far too long is cut. */
export function chart(results: Results): string {
  let top = 8;
  const parts = PANELS.flatMap(({ id, figure, title }) => {
    const bars = Object.entries(results.rows[id]?.subjects ?? {})
      .flatMap(([name, figures]) => {
        const spread = spreadOf(figures[figure]);
        return spread ? [{ name, spread }] : [];
      })
      .sort((a, b) => a.spread.median - b.spread.median);
    if (bars.length === 0) return [];
    const most =
      1.25 * Math.max(...bars.filter(({ name }) => isCompared(name)).map(({ spread }) => spread.median));
    const heading = `<text class="title" x="0" y="${top + 18}">${title}</text>`;
    const lines = bars.map((bar, index) => oneBar(bar, top + HEAD + index * (BAR + GAP), most));
    top += HEAD + bars.length * (BAR + GAP) + 16;
    return [heading, ...lines];
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${top}" width="${WIDTH}" height="${top}" role="img" aria-label="Presign next to other gateways. Shorter is better.">
<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.title { font-weight: 600; font-size: 14px; }
.own { fill: #0969da; } .same { fill: #57606a; } .other { fill: #afb8c1; }
.range { stroke: #1f2328; stroke-width: 1; } .cut { stroke: #ffffff; stroke-width: 4; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .own { fill: #4493f8; } .same { fill: #9198a1; } .other { fill: #484f58; }
.range { stroke: #e6edf3; } .cut { stroke: #0d1117; }
}
</style>
${parts.join('\n')}
</svg>
`;
}

function oneBar(
  { name, spread }: { readonly name: string; readonly spread: Spread },
  y: number,
  most: number,
): string {
  const scale = (value: number) => Math.round((Math.min(value, most) / most) * (WIDTH - LABEL - VALUE));
  const isCut = spread.median > most;
  const width = Math.max(2, scale(spread.median));
  const kind = name.startsWith('Presign') ? 'own' : name === METERED ? 'same' : 'other';
  const middle = y + BAR / 2;
  const at = LABEL + (isCut ? width : Math.max(width, scale(spread.high))) + 6;
  const cut = LABEL + width - 24;
  return [
    `<text x="${LABEL - 8}" y="${y + 13}" text-anchor="end">${name}</text>`,
    `<rect class="${kind}" x="${LABEL}" y="${y}" width="${width}" height="${BAR}" rx="2"/>`,
    isCut
      ? `<path class="cut" d="M${cut} ${y + BAR + 2} l8 -${BAR + 4}"/>`
      : `<path class="range" d="M${LABEL + scale(spread.low)} ${middle} H${LABEL + scale(spread.high)}"/>`,
    `<text x="${at}" y="${y + 13}">${rounded(spread.median)}</text>`,
  ].join('');
}

const isCompared = (name: string) => name.startsWith('Presign') || name === METERED;
const rounded = (value: number) => Number(value.toPrecision(value < 100 ? 2 : 3)).toLocaleString('en');
