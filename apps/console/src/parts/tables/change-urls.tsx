import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ChangedMeanwhile, changeUrl, lacksUrl } from '../../api/change-url.ts';
import { count, readMoney } from '../../data/format/format.ts';
import { nameOfUrl, planChange, type Url, type UrlChange, type UrlPlan, wordsOf } from '../../data/urls.ts';
import { Action, Secret } from '../forms/action.tsx';
import { Field, textsOf } from '../forms/form.tsx';
import { RunChange } from './run-change.tsx';

type Texts = Readonly<Record<string, string>>;

/** A change that the user can apply to URLs. */
type Way = {
  readonly label: string;
  readonly isDanger?: boolean;
  readonly fields: ComponentChildren;
  /** Undefined: no valid input. */
  readonly read: (texts: Texts) => UrlChange | undefined;
  readonly wanted: string;
};

const WAYS: readonly Way[] = [
  {
    label: 'Raise',
    fields: (
      <>
        <Field
          label="Dollars more"
          name="dollars"
          hint="Added to each limit in dollars, such as 5 or 0.50."
        />
        <Field label="Uses more" name="uses" type="number" min={1} hint="Added to each limit of uses." />
      </>
    ),
    read: ({ dollars = '0', uses = '0' }) => {
      const change = {
        kind: 'raise',
        dollars: readMoney(dollars) ?? Number.NaN,
        uses: Number(uses),
      } as const;
      const isRead =
        Number.isSafeInteger(change.dollars) && Number.isSafeInteger(change.uses) && change.uses >= 0;
      return isRead && change.dollars + change.uses > 0 ? change : undefined;
    },
    wanted: 'Enter dollars with at most six decimals, a whole number of uses, or both.',
  },
  {
    label: 'Extend',
    fields: (
      <Field
        label="Hours"
        name="hours"
        type="number"
        value="24"
        min={1}
        required
        hint="Added to the present end of each."
      />
    ),
    read: ({ hours }) => {
      const seconds = Math.round(Number(hours) * 3_600);
      return seconds > 0 ? { kind: 'extend', seconds } : undefined;
    },
    wanted: 'Enter how many hours.',
  },
  { label: 'Revoke', isDanger: true, fields: null, read: () => ({ kind: 'revoke' }), wanted: '' },
];

/** Describes the effect of a change on these URLs while the user types. */
function Preview({ way, urls }: { way: Way; urls: readonly Url[] }) {
  const [texts, setTexts] = useState<Texts>();
  const box = useRef<HTMLDivElement>(null);
  const follow = () => {
    const form = box.current?.closest('form');
    if (form) setTexts(textsOf(form));
  };
  useEffect(follow, []);
  const change = texts && way.read(texts);
  return (
    <div ref={box} onInput={follow}>
      {way.fields}
      <div role="status" class="plan">
        {change ? (
          wordsOf(planChange(change, urls)).map((each) => <p key={each}>{each}</p>)
        ) : (
          <p>{way.wanted}</p>
        )}
      </div>
    </div>
  );
}

/** @throws Error that says why nothing would change */
function planOf(way: Way, texts: Texts, urls: readonly Url[]): UrlPlan {
  const change = way.read(texts);
  if (!change) throw new Error(way.wanted);
  const plan = planChange(change, urls);
  if (plan.planned.length === 0) throw new Error(wordsOf(plan).join(' '));
  return plan;
}

/** The buttons that change one URL. */
export const ChangeUrl = ({ url }: { url: Url }) => (
  <>
    {WAYS.map((way) => (
      <ChangeOne key={way.label} way={way} url={url} />
    ))}
  </>
);

function ChangeOne({ way, url }: { way: Way; url: Url }) {
  /** The URL as it was changed elsewhere while the dialog was open. */
  const meanwhile = useRef<Url>();
  const run = async (texts: Texts) => {
    const plan = planOf(way, texts, [meanwhile.current ?? url]);
    const [first] = plan.planned;
    if (!first) return undefined;
    try {
      const changed = await changeUrl(first);
      return { ...changed, again: lacksUrl(first, changed) ? plan : undefined };
    } catch (error) {
      if (error instanceof ChangedMeanwhile) meanwhile.current = error.url;
      throw error;
    }
  };
  return (
    <Action
      label={way.label}
      of={nameOfUrl(url)}
      title={`${way.label} the URL ${nameOfUrl(url)}`}
      submit={way.label}
      isDanger={way.isDanger ?? false}
      run={run}
      onOpen={() => {
        meanwhile.current = undefined;
      }}
      show={(changed) => {
        if (changed?.again) return <RunChange plan={changed.again} more="" leave={() => undefined} />;
        if (changed?.newUrl) return <Secret label="The URL with the later end" value={changed.newUrl} />;
        return changed?.isPending ? (
          <p>The change is stored. It takes effect as soon as Redis answers.</p>
        ) : undefined;
      }}
    >
      <Preview way={way} urls={[url]} />
    </Action>
  );
}

type ChangeUrlsProps = {
  readonly urls: readonly Url[];
  /** Says that more URLs match than these. */
  readonly more: string;
  readonly onOpen: (isOpen: boolean) => void;
  /** Called with the ids of the changed URLs when the user closes the answer. */
  readonly leave: (done: ReadonlySet<string>) => void;
};

/** The buttons that change all URLs that were selected. */
export const ChangeUrls = ({ urls, more, onOpen, leave }: ChangeUrlsProps) => (
  <>
    {WAYS.map((way) => (
      <Action
        key={way.label}
        label={way.label}
        of="the selected URLs"
        title={`${way.label} ${count(urls.length)} ${urls.length === 1 ? 'URL' : 'URLs'}`}
        submit={way.label}
        isDanger={way.isDanger ?? false}
        onOpen={onOpen}
        run={async (texts) => ({ plan: planOf(way, texts, urls), more })}
        show={(started) => <RunChange {...started} leave={leave} />}
      >
        <Preview way={way} urls={urls} />
        {more && <p class="failed">{more}</p>}
      </Action>
    ))}
  </>
);
