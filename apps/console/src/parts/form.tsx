import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { href, usePlace } from '../place.ts';

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
  useEffect(() => form.current?.reset(), [place]);
  const apply = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    location.hash = href(path, textsOf(event.currentTarget));
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
