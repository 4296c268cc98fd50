import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { dimensionName } from '../../data/usage.ts';
import { exactHref, filtersIn, placeNow, rangeOnly, usePlace } from '../page/place.ts';
import { useProblem } from './problem.ts';

type FieldProps = {
  readonly label: string;
  readonly name: string;
  readonly hint?: string;
  readonly value?: string | undefined;
  readonly type?: string;
  readonly min?: number;
  readonly required?: boolean;
  readonly placeholder?: string;
  /** Values to choose from. Others can be typed. */
  readonly suggested?: readonly string[] | undefined;
  readonly onFocus?: () => void;
  readonly onTyped?: (text: string) => void;
  /** Its name in the API, if that differs. A refusal with this name is shown here. */
  readonly param?: string;
};

export function Field({ label, hint, value, suggested, param, onTyped, ...input }: FieldProps) {
  const id = useId();
  const { message, field } = useProblem<HTMLInputElement>(param ?? input.name);
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <input
        ref={field}
        id={id}
        autocomplete="off"
        spellcheck={false}
        defaultValue={value}
        {...describedBy(id, hint, message)}
        list={suggested && `${id}-list`}
        onInput={(event) => onTyped?.(event.currentTarget.value)}
        {...input}
      />
      {suggested && <Suggested id={`${id}-list`} of={suggested} />}
      <Notes id={id} hint={hint} message={message} />
    </p>
  );
}

export const Suggested = ({ id, of }: { id: string; of: readonly string[] }) => (
  <datalist id={id}>
    {of.map((each) => (
      <option key={each} value={each} />
    ))}
  </datalist>
);

/** Ties a control to its `Notes`. */
export const describedBy = (id: string, hint: string | undefined, message: string | undefined) => ({
  'aria-invalid': message !== undefined,
  'aria-describedby':
    [hint && `${id}-hint`, message && `${id}-problem`].filter(Boolean).join(' ') || undefined,
});

type NotesProps = {
  readonly id: string;
  readonly hint: string | undefined;
  readonly message: string | undefined;
};

/** The hint of a control, and why the issuer refused its value. */
export const Notes = ({ id, hint, message }: NotesProps) => (
  <>
    {hint && (
      <small id={`${id}-hint`} class="soft">
        {hint}
      </small>
    )}
    {message && (
      <small id={`${id}-problem`} class="problem" role="alert">
        {message}
      </small>
    )}
  </>
);

type ChoiceProps = Pick<FieldProps, 'label' | 'name' | 'value'> & {
  /** Value and text. */
  readonly options: readonly (readonly [string, string])[];
};

export function Choice({ label, name, value = '', options }: ChoiceProps) {
  const id = useId();
  const all = options.some(([each]) => each === value) ? options : [...options, [value, value] as const];
  // The value that a form reset restores. Preact's types lack this property.
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name}>
        {all.map(([each, text]) => (
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

/** How long after the last key press a typed filter applies. */
const TYPED_MS = 400;

/**
 * A form that writes its fields into the address when they change. The fields follow when a link or the Back button changes the address. A
 * filter in the address without a field among the children gets its own field, so that it is visible, kept and removable.
 */
export const FilterForm = ({ path, children }: { path: string; children: ComponentChildren }) => {
  const form = useRef<HTMLFormElement>(null);
  const place = usePlace();
  const typed = useRef<ReturnType<typeof setTimeout>>();
  const [others, setOthers] = useState<readonly string[]>([]);
  const findOthers = () => {
    const names = form.current ? withoutField(form.current, filtersIn(place.params)) : [];
    if (names.join() !== others.join()) setOthers(names);
  };
  // Runs after each change of the children, because a field may appear with an answer.
  useLayoutEffect(findOthers);
  // Runs together with the change of the fields, because the next frame would erase text typed in between. The page
  // around this form may render later, so the fields also follow their properties.
  const followed = useRef<string>();
  useLayoutEffect(() => {
    const given = form.current
      ? `${place.path} ${JSON.stringify(place.params)} ${givenTo(form.current)}`
      : undefined;
    if (form.current && given !== followed.current) followAddress(form.current, typed.current !== undefined);
    followed.current = given;
  });
  useEffect(() => () => clearTimeout(typed.current), []);
  const apply = () => {
    clearTimeout(typed.current);
    typed.current = undefined;
    if (!form.current) return;
    const next = exactHref(path, { ...rangeOnly(place), ...textsOf(form.current) });
    if (next !== location.hash) location.hash = next;
  };
  const onInput = ({ target }: JSX.TargetedInputEvent<HTMLFormElement>) => {
    clearTimeout(typed.current);
    if (target instanceof HTMLInputElement) typed.current = setTimeout(apply, TYPED_MS);
    else apply();
  };
  const onSubmit = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    apply();
  };
  return (
    <search>
      <form ref={form} class="filters" onInput={onInput} onSubmit={onSubmit} onFocusOut={findOthers}>
        {children}
        {others.map((name) => (
          <div key={name} data-other={name}>
            <Field label={dimensionName(name)} name={name} type="search" value={place.params[name]} />
          </div>
        ))}
        <button type="submit" class="unseen">
          Apply
        </button>
      </form>
    </search>
  );
};

/** The filters without their own field. A filter with the focus stays until it loses the focus. */
function withoutField(form: HTMLFormElement, filters: Readonly<Record<string, string>>): string[] {
  const names = new Set(Object.keys(filters));
  for (const field of form.querySelectorAll<HTMLInputElement | HTMLSelectElement>('[name]')) {
    if (field.closest('[data-other]') === null) names.delete(field.name);
    else if (field === document.activeElement) names.add(field.name);
  }
  return [...names].sort();
}

/** The values that a page gives the fields of a form. */
const givenTo = (form: HTMLFormElement): string =>
  JSON.stringify(
    Array.from(form.querySelectorAll<HTMLInputElement | HTMLOptionElement>('input, select option'), (each) =>
      each instanceof HTMLInputElement ? each.defaultValue : each.defaultSelected,
    ),
  );

/**
 * Resets all fields. The one with the focus keeps a text that is newer than the address, and the spaces around its text. After the Back button
 * its text is older, and follows.
 */
function followAddress(form: HTMLFormElement, isTyping: boolean): void {
  const { params } = placeNow();
  for (const field of form.querySelectorAll<HTMLInputElement | HTMLSelectElement>('input, select')) {
    if (field instanceof HTMLInputElement) {
      const wanted = params[field.name] ?? '';
      if (field !== document.activeElement) field.value = field.defaultValue;
      else if (!isTyping && field.value.trim() !== wanted.trim()) field.value = wanted;
    } else for (const option of field.options) option.selected = option.defaultSelected;
  }
}
