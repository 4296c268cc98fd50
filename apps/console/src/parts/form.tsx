import type { ComponentChildren, JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';
import { moment } from '../data/format.ts';
import { href, type Place, usePlace } from './place.ts';

type FieldProps = {
  readonly label: string;
  readonly name: string;
  readonly hint?: string;
  readonly value?: string | undefined;
  readonly type?: string;
  readonly required?: boolean;
  readonly placeholder?: string;
};

export function Field({ label, hint, value, ...input }: FieldProps) {
  const id = useId();
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        autocomplete="off"
        spellcheck={false}
        defaultValue={value}
        aria-describedby={hint && `${id}-hint`}
        {...input}
      />
      {hint && (
        <small id={`${id}-hint`} class="soft">
          {hint}
        </small>
      )}
    </p>
  );
}

type ChoiceProps = Pick<FieldProps, 'label' | 'name' | 'value'> & {
  /** Value and text. */
  readonly options: readonly (readonly [string, string])[];
};

export function Choice({ label, name, value, options }: ChoiceProps) {
  const id = useId();
  // The property to which a reset of the form returns. The types of Preact lack it.
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name}>
        {options.map(([each, text]) => (
          <option key={each} value={each} {...{ defaultSelected: each === value }}>
            {text}
          </option>
        ))}
      </select>
    </p>
  );
}

/** The texts of a form that are not empty. */
export function textsOf(form: HTMLFormElement): Record<string, string> {
  const all = Array.from(new FormData(form), ([name, value]) => [name, String(value).trim()] as const);
  return Object.fromEntries(all.filter(([, value]) => value !== ''));
}

/** A form whose fields become the parameters of the address, and follow it when a link or the Back button changes it. */
export const FilterForm = ({ path, children }: { path: string; children: ComponentChildren }) => {
  const form = useRef<HTMLFormElement>(null);
  const place = usePlace();
  // With the change of the fields, not after the next frame: that would erase what the reader typed in between.
  useLayoutEffect(() => form.current?.reset(), [place]);
  const apply = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    location.hash = href(path, filtersOf(event.currentTarget, place.params));
  };
  return (
    <search>
      <form ref={form} class="filters" onSubmit={apply}>
        {children}
        <button type="submit">Apply</button>
      </form>
    </search>
  );
};

/**
 * The filters of a form. A time gets its zone, so that the address means the same everywhere. One that was not changed stays as
 * precise as it is: its field shows minutes.
 */
function filtersOf(form: HTMLFormElement, inForce: Place['params']): Record<string, string> {
  const filters = textsOf(form);
  for (const { name, value, defaultValue } of form.querySelectorAll<HTMLInputElement>(TIMES)) {
    const kept = value === defaultValue ? inForce[name] : undefined;
    if (value !== '') filters[name] = moment(kept ?? value);
  }
  return filters;
}

const TIMES = 'input[type="datetime-local"]';

/** Opens the page of one thing by its id. */
export function OpenById({ label, path }: { label: string; path: string }) {
  const open = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const { id } = textsOf(event.currentTarget);
    if (id !== undefined) location.hash = href(`${path}/${encodeURIComponent(id)}`);
  };
  return (
    <form class="filters" onSubmit={open}>
      <Field label={label} name="id" required />
      <button type="submit">Open</button>
    </form>
  );
}
