import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useState } from 'preact/hooks';
import { describedBy, Notes, Suggested } from '../parts/forms/form.tsx';
import { useProblem } from '../parts/forms/problem.ts';
import { Several } from '../parts/forms/several.tsx';
import { type ListField, type PolicyDraft, problemOf, type TextField } from './policy-draft.ts';

export type Edit = {
  readonly draft: PolicyDraft;
  readonly setText: (field: TextField, text: string) => void;
  readonly setList: (field: ListField, list: readonly string[]) => void;
};

export type GroupProps = {
  readonly name: string;
  readonly fields: readonly (TextField | ListField)[];
} & Edit & {
    readonly children: ComponentChildren;
  };

/** Fields that belong together. Fields without a value are folded. */
export function Group({ name, fields, draft, children }: GroupProps) {
  const given = fields.filter((each) => draft.lists[each as ListField] ?? draft.texts[each as TextField]);
  const [isOpen] = useState(given.length > 0);
  return (
    <details open={isOpen}>
      <summary>
        {name} {given.length > 0 && <small class="soft">{given.length} set</small>}
      </summary>
      <div class="filters">{children}</div>
    </details>
  );
}

type ListProps = Edit & {
  readonly field: ListField;
  readonly label: string;
  readonly hint?: string;
  readonly suggested?: readonly string[] | undefined;
  readonly onFocus?: () => void;
};

export const List = ({ field, draft, setList, setText: _, ...props }: ListProps) => (
  <Several
    {...props}
    param={`policy.${field}`}
    value={draft.lists[field] ?? []}
    onChange={(list) => setList(field, list)}
  />
);

type ChecksProps = Edit & {
  readonly field: ListField;
  readonly legend: string;
  readonly hint: string;
  readonly options: readonly (readonly [value: string, text: string])[];
};

export function Checks({ field: name, legend, hint, options, draft, setList }: ChecksProps) {
  const id = useId();
  const { message, field } = useProblem<HTMLFieldSetElement>(`policy.${name}`);
  const chosen = draft.lists[name] ?? [];
  const toggle = (value: string) => (event: { currentTarget: HTMLInputElement }) =>
    setList(name, event.currentTarget.checked ? [...chosen, value] : chosen.filter((each) => each !== value));
  return (
    <fieldset ref={field} tabIndex={-1} {...describedBy(id, hint, message)}>
      <legend>{legend}</legend>
      {options.map(([value, text]) => (
        <label key={value}>
          <input type="checkbox" checked={chosen.includes(value)} onChange={toggle(value)} /> {text}
        </label>
      ))}
      <Notes id={id} hint={hint} message={message} />
    </fieldset>
  );
}

type EntryProps = Edit & {
  readonly field: TextField;
  readonly label: string;
  readonly hint?: string;
  readonly type?: string;
  readonly suggested?: readonly string[];
  readonly onFocus?: () => void;
};

export function Entry({
  field: name,
  label,
  hint,
  draft,
  setText,
  suggested,
  setList: _,
  ...input
}: EntryProps) {
  const id = useId();
  const { message, field } = useProblem<HTMLInputElement>(`policy.${name}`);
  const text = draft.texts[name] ?? '';
  useLayoutEffect(() => field.current?.setCustomValidity(problemOf(name, text)), [text]);
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <input
        ref={field}
        id={id}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(name, event.currentTarget.value)}
        list={suggested && `${id}-list`}
        {...describedBy(id, hint, message)}
        {...input}
      />
      {suggested && <Suggested id={`${id}-list`} of={suggested} />}
      <Notes id={id} hint={hint} message={message} />
    </p>
  );
}

type FlagProps = Edit & {
  readonly field: 'sockets' | 'refuse_warnings';
  readonly label: string;
  /** Each value in words. Empty: the policy does not have the field. */
  readonly texts: Readonly<Record<'' | 'true' | 'false', string>>;
};

export function Flag({ field: name, label, texts, draft, setText }: FlagProps) {
  const id = useId();
  const { message, field } = useProblem<HTMLSelectElement>(`policy.${name}`);
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <select
        ref={field}
        id={id}
        value={draft.texts[name] ?? ''}
        onChange={(event) => setText(name, event.currentTarget.value)}
        {...describedBy(id, undefined, message)}
      >
        {Object.entries(texts).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      <Notes id={id} hint={undefined} message={message} />
    </p>
  );
}
