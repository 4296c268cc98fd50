import { useEffect, useRef, useState } from 'preact/hooks';
import { type Changed, ChangedMeanwhile, changeUrl, lacksUrl } from '../../api/change-url.ts';
import { runAll } from '../../api/run-all.ts';
import { saveText } from '../../api/save.ts';
import { count } from '../../data/format/format.ts';
import { nameOfUrl, type Planned, planChange, type UrlChange, type UrlPlan } from '../../data/urls.ts';
import { Secret } from '../forms/action.tsx';
import { Table } from './table.tsx';

/** How the change of each URL ended, by its id. */
type Ends = ReadonlyMap<string, Planned & { readonly end: Changed | Error }>;

type RunChangeProps = {
  readonly plan: UrlPlan;
  /** Says that more URLs match than the plan contains. */
  readonly more: string;
  readonly leave: (done: ReadonlySet<string>) => void;
};

/**
 * Runs a change when it is shown, with its progress and a line for each failure. If the user leaves it, it ends after the running requests.
 */
export function RunChange({ plan: { change, planned }, more, leave }: RunChangeProps) {
  const [ends, setEnds] = useState<Ends>(new Map());
  const [isRunning, setRunning] = useState(false);
  const latest = useRef({ ends, stop: new AbortController() });
  const run = async (items: readonly Planned[]) => {
    const stop = new AbortController();
    latest.current.stop = stop;
    setRunning(true);
    await runAll(
      items,
      async (item) => {
        const end = await changeUrl(item).catch((error: Error) => error);
        latest.current.ends = new Map(latest.current.ends).set(item.url.id, { ...item, end });
        setEnds(latest.current.ends);
      },
      stop.signal,
    );
    setRunning(false);
  };
  useEffect(() => {
    void run(planned);
    return () => {
      latest.current.stop.abort();
      leave(doneIn(latest.current.ends));
    };
  }, []);
  const rest = restOf(change, planned, ends);
  return (
    <div data-unsaved={isRunning && change.kind === 'extend' ? '' : undefined}>
      <Progress all={planned.length} ends={ends} />
      {more && <p class="failed">{more}</p>}
      {isRunning && (
        <button type="button" onClick={() => latest.current.stop.abort()}>
          Stop
        </button>
      )}
      <Failures ends={ends} />
      {!isRunning && rest.length > 0 && (
        <p class="buttons">
          <button type="button" onClick={() => void run(rest)}>
            Try again for {count(rest.length)}
          </button>
        </p>
      )}
      <NewUrls ends={ends} />
    </div>
  );
}

const isDone = (end: Changed | Error | undefined): end is Changed =>
  end !== undefined && !(end instanceof Error);

const isFinished = (item: Planned, end: Changed | Error | undefined): boolean =>
  isDone(end) && !lacksUrl(item, end);

const doneIn = (ends: Ends): ReadonlySet<string> =>
  new Set([...ends].flatMap(([id, { end, ...item }]) => (isFinished(item, end) ? id : [])));

/** The URLs that failed, were not sent, or lack their new URL. A URL that was changed elsewhere starts from its present state. */
function restOf(change: UrlChange, planned: readonly Planned[], ends: Ends): readonly Planned[] {
  return planned.flatMap((item) => {
    const end = ends.get(item.url.id)?.end;
    if (isFinished(item, end)) return [];
    return end instanceof ChangedMeanwhile ? planChange(change, [end.url]).planned : [item];
  });
}

function Progress({ all, ends }: { all: number; ends: Ends }) {
  const done = [...ends.values()].filter(({ end }) => isDone(end)).length;
  const pending = [...ends.values()].filter(({ end }) => isDone(end) && end.isPending).length;
  const failed = ends.size - done;
  const lacking = [...ends.values()].filter(({ end, ...item }) => isDone(end) && lacksUrl(item, end)).length;
  return (
    <>
      <progress max={all} value={done} aria-label="URLs that are changed" />
      <p>
        {count(done)} of {count(all)} done{failed > 0 && `, ${count(failed)} failed`}.
        {pending > 0 && ` ${count(pending)} are stored and take effect as soon as Redis answers.`}
        {lacking > 0 && ' Their new URLs are missing: try again when Redis answers.'}
      </p>
    </>
  );
}

function Failures({ ends }: { ends: Ends }) {
  const failed = [...ends.values()].flatMap(({ url, end }) => (end instanceof Error ? [{ url, end }] : []));
  if (failed.length === 0) return null;
  return (
    <Table
      caption="URLs that failed"
      rows={failed}
      keyOf={({ url }) => url.id}
      columns={[
        { head: 'URL', cell: ({ url }) => nameOfUrl(url) },
        { head: 'User', cell: ({ url }) => url.external_user ?? '–' },
        { head: 'Why', cell: ({ end }) => end.message },
      ]}
    />
  );
}

/** The new URLs, which no other page shows. */
function NewUrls({ ends }: { ends: Ends }) {
  const [saved, setSaved] = useState(0);
  const all = [...ends.values()].flatMap(({ url, end }) =>
    isDone(end) && end.newUrl !== null ? [{ url, newUrl: end.newUrl }] : [],
  );
  const [first] = all;
  if (!first) return null;
  const save = () => {
    saveText('new-urls.csv', csvOf(all.map(({ url, newUrl }) => [url.id, url.external_user ?? '', newUrl])));
    setSaved(all.length);
  };
  return (
    <div data-unsaved={saved < all.length ? '' : undefined}>
      {all.length === 1 ? (
        <Secret
          label={`The URL with the later end of ${[first.url.external_user, nameOfUrl(first.url)].filter(Boolean).join(', ')}`}
          value={first.newUrl}
          onCopied={() => setSaved(1)}
        />
      ) : (
        <p>{count(all.length)} URLs are new. Give them to their holders: they are not shown again.</p>
      )}
      <p>
        <button type="button" onClick={save}>
          {all.length === 1 ? 'Save it as CSV' : 'Save the new URLs as CSV'}
        </button>
      </p>
    </div>
  );
}

const csvOf = (rows: readonly (readonly string[])[]): string =>
  [['id', 'external_user', 'url'], ...rows].map((row) => `${row.map(quoted).join(',')}\r\n`).join('');

/** A field of CSV. A spreadsheet would run a field that begins like a formula. */
const quoted = (text: string): string => `"${text.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`;
