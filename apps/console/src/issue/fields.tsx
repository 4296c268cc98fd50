import type { JSX } from 'preact';
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks';
import { readMoney, writeMoney } from '../data/format/format.ts';
import { Add, Options, Picks } from './picks.tsx';
import {
  exampleText,
  fieldsOf,
  groupOf,
  hintOf,
  lengthOf,
  type RequestField,
  readJson,
  type Schema,
  type Texts,
} from './schema.ts';

type FieldsProps = {
  readonly of: Schema;
  /** The name of the group. The request itself has no name. */
  readonly at?: string;
  /** A value of the group. Fields without a value are folded. */
  readonly example?: Readonly<Record<string, unknown>> | undefined;
  readonly texts: Texts;
};

/** The fields of a request, or of a group in it, as its schema describes them. */
export function Fields({ of, at = '', example, texts }: FieldsProps) {
  const all = fieldsOf(of, at, texts);
  const isCommon = ({ label, isRequired }: RequestField) => !example || isRequired || label in example;
  const rare = all.filter((field) => !isCommon(field));
  const show = (field: RequestField) => (
    <AnyField key={field.label} field={field} example={example?.[field.label]} texts={texts} />
  );
  return (
    <>
      {all.filter(isCommon).map(show)}
      {rare.length > 0 && (
        <details onInvalidCapture={unfold}>
          <summary>{rare.length} more fields</summary>
          {rare.map(show)}
        </details>
      )}
    </>
  );
}

/** The browser shows its validation message only at a visible control. */
const unfold = ({ currentTarget: fold }: JSX.TargetedEvent<HTMLDetailsElement>): void => {
  fold.open = true;
};

type FieldProps = { readonly field: RequestField; readonly example: unknown; readonly texts: Texts };

function AnyField({ field, example, texts }: FieldProps) {
  if (field.kind === 'list') return <List field={field} example={example} texts={texts} />;
  if (field.kind !== 'group')
    return <Control field={field} example={field.schema.examples?.[0] ?? example} />;
  if (Object.keys(field.schema.properties ?? {}).length === 0) return null;
  return (
    <fieldset>
      <legend>{field.name}</legend>
      <Hint of={field} />
      <Fields of={field.schema} at={field.name} texts={texts} />
    </fieldset>
  );
}

/** Groups that the reader adds and removes. The names of the fields follow the order of the groups. */
function List({ field, example, texts }: FieldProps) {
  const [keys, setKeys] = useState(() => Array.from({ length: lengthOf(field.name, texts) || 1 }, newKey));
  const end = useRef<HTMLButtonElement>(null);
  // The form reads its fields on input events, and this change fires none.
  useEffect(() => void end.current?.form?.dispatchEvent(new Event('input')), [keys]);
  const [first] = Array.isArray(example) ? (example as Record<string, unknown>[]) : [];
  return (
    <>
      {keys.map((key, at) => (
        <fieldset key={key}>
          <legend>{`${field.name}[${at}]`}</legend>
          <Fields of={groupOf(field)} at={`${field.name}[${at}]`} example={first} texts={texts} />
          {keys.length > 1 && (
            <button type="button" onClick={() => setKeys(keys.filter((each) => each !== key))}>
              Remove {`${field.name}[${at}]`}
            </button>
          )}
        </fieldset>
      ))}
      <p>
        <button ref={end} type="button" onClick={() => setKeys([...keys, newKey()])}>
          Add to {field.label}
        </button>
      </p>
    </>
  );
}

const newKey = (): string => crypto.randomUUID();

const Hint = ({ of, id }: { of: RequestField; id?: string }) => {
  const hint = hintOf(of);
  return hint === '' ? null : (
    <small id={id} class="soft">
      {hint}
    </small>
  );
};

/** One control. It has the limits of the schema, so that the browser validates them. */
function Control({ field, example }: { field: RequestField; example: unknown }) {
  const id = useId();
  const { name, label, kind, schema, isRequired } = field;
  const pick = useContext(Picks)[name];
  const shared = {
    id,
    name,
    required: isRequired,
    autocomplete: 'off',
    spellcheck: false,
    'aria-describedby': hintOf(field) === '' ? undefined : `${id}-hint`,
  };
  const typed = {
    ...shared,
    minLength: schema.minLength,
    maxLength: schema.maxLength,
    placeholder: exampleText(
      kind === 'dollars' && typeof example === 'number' ? writeMoney(example) : example,
    ),
  };
  const isList = pick !== undefined && kind === 'text';
  return (
    <p class="field">
      <label for={id}>
        {label}
        {isRequired && ' (required)'}
      </label>
      {pick?.isClosed ? (
        <select {...shared}>
          <option value="">none</option>
          {pick.options.map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
      ) : kind === 'choice' ? (
        <select {...shared}>
          <option value="">{isRequired ? '' : 'default'}</option>
          {schema.enum?.map((each) => (
            <option key={each} value={each}>
              {each}
            </option>
          ))}
        </select>
      ) : kind === 'lines' || kind === 'json' ? (
        <textarea {...typed} rows={2} onInput={kind === 'json' ? judgeJson : undefined} />
      ) : (
        <input {...typed} {...inputOf(field)} list={isList ? `${id}-list` : undefined} />
      )}
      {pick && isList && <Options id={`${id}-list`} of={pick.options} />}
      {pick && kind === 'lines' && <Add label={label} of={pick.options} />}
      <Hint of={field} id={`${id}-hint`} />
    </p>
  );
}

const TYPES = { number: 'number', secret: 'password', switch: 'checkbox' } as const;

const inputOf = ({ kind, schema: { type, minimum, maximum } }: RequestField) => ({
  type: kind === 'number' || kind === 'secret' || kind === 'switch' ? TYPES[kind] : 'text',
  ...(kind === 'dollars' && { inputMode: 'decimal' as const, onInput: judgeDollars }),
  ...(kind === 'number' && { min: minimum, max: maximum, step: type === 'integer' ? 1 : 'any' }),
});

const judgeDollars = ({ currentTarget: field }: JSX.TargetedInputEvent<HTMLInputElement>): void =>
  field.setCustomValidity(
    field.value.trim() === '' || readMoney(field.value) !== undefined
      ? ''
      : 'Expected dollars with at most six decimals, such as 25 or 0.05.',
  );

const judgeJson = ({ currentTarget: area }: JSX.TargetedInputEvent<HTMLTextAreaElement>): void =>
  area.setCustomValidity(
    area.value.trim() === '' || readJson(area.value) !== undefined ? '' : 'Expected JSON.',
  );
