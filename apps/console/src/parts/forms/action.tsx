import { useMutation, useQueryClient } from '@tanstack/preact-query';
import type { ComponentChildren, JSX, RefObject } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { reload } from '../../api/pages.ts';
import { Failed } from '../page/answer.tsx';
import { textsOf } from './form.tsx';
import { Problem } from './problem.ts';

type ActionProps<Answer> = {
  /** The text of the button. */
  readonly label: string;
  /** For a screen reader, where several buttons have the same text. */
  readonly of?: string;
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly submit: string;
  readonly isDanger?: boolean;
  /** For a form of many fields. */
  readonly isWide?: boolean;
  /** Makes the request from the form. Its error is shown, and the form stays open. */
  readonly run: (fields: Fields) => Promise<Answer>;
  /** Replaces the form, for answers that the user has to read. */
  readonly show?: (answer: Answer) => ComponentChildren;
  readonly onOpen?: (isOpen: boolean) => void;
};

/** A button that asks before it changes something, in a dialog with the fields of the change. */
export function Action<Answer>({
  label,
  of,
  title,
  submit,
  isDanger,
  isWide,
  run,
  show,
  onOpen,
  children,
}: ActionProps<Answer>) {
  const dialog = useRef<HTMLDialogElement>(null);
  const button = useFocusAfter(dialog);
  /** The values from when the dialog was opened, because later refreshes must not change the request. */
  const [opened, setOpened] = useState<Pick<ActionProps<Answer>, 'run' | 'children' | 'title'>>();
  /** The last error that a field shows. */
  const [shown, setShown] = useState<Error>();
  const heading = useId();
  const shownOf = (answer: Answer): ComponentChildren => (isPending(answer) ? PENDING : show?.(answer));
  const { change, send, reload } = useChange(dialog, opened?.run, shownOf);
  const open = () => {
    if (change.isSuccess) void reload();
    change.reset();
    setOpened({ run, children, title });
    onOpen?.(true);
    dialog.current?.showModal();
  };
  const onClose = () => {
    // The event comes after the dialog has closed, which may be open again by then.
    if (dialog.current?.open) return;
    setOpened(undefined);
    onOpen?.(false);
    if (change.isSuccess) void reload();
  };
  const close = () => mayClose(dialog.current) && dialog.current?.close();
  useEscape(dialog, opened !== undefined);
  return (
    <>
      <button ref={button} type="button" class={isDanger ? 'danger' : undefined} onClick={open}>
        {label}
        {of && <span class="unseen"> {of}</span>}
      </button>
      <dialog ref={dialog} class={isWide ? 'wide' : undefined} aria-labelledby={heading} onClose={onClose}>
        <h2 id={heading}>{opened?.title ?? title}</h2>
        {opened && change.isSuccess && <div role="status">{shownOf(change.data)}</div>}
        {opened && !change.isSuccess && (
          <form id={`${heading}-form`} onSubmit={send}>
            <Problem.Provider value={{ error: change.error, onShown: setShown }}>
              {opened.children}
            </Problem.Provider>
            {change.error && change.error !== shown && <Failed error={change.error} />}
          </form>
        )}
        <p class="buttons">
          {opened && !change.isSuccess && (
            <button
              type="submit"
              form={`${heading}-form`}
              class={isDanger ? 'danger' : 'main'}
              disabled={change.isPending}
            >
              {submit}
            </button>
          )}
          <button type="button" onClick={close}>
            {change.isSuccess ? 'Close' : 'Cancel'}
          </button>
        </p>
      </dialog>
    </>
  );
}

type Fields = Readonly<Record<string, string>>;

/** Sends the form of a dialog. `run` exists only while the dialog is open. Afterwards nothing of the form and its answer is kept. */
function useChange<Answer>(
  dialog: RefObject<HTMLDialogElement>,
  run: ((fields: Fields) => Promise<Answer>) | undefined,
  shownOf: (answer: Answer) => ComponentChildren,
) {
  const client = useQueryClient();
  /** A second press can arrive before the button is drawn as disabled. */
  const isSent = useRef(false);
  /** The request with its fields. They may contain a secret, and a mutation cache would keep it. */
  const sent = useRef<() => Promise<Answer>>();
  const change = useMutation({
    gcTime: 0,
    // It uses the request in `send`, because its own `run` belongs to an earlier render until the effects of this
    // render have run.
    mutationFn: async () => {
      const request = sent.current;
      sent.current = undefined;
      if (!request) throw new Error('The dialog is closed.');
      return request();
    },
    onSettled: (answer) => {
      isSent.current = false;
      // The user reads the answer first, because afterwards the row of this button, and so its dialog, may be gone.
      if (dialog.current?.open && answer !== undefined && shownOf(answer)) return undefined;
      // A conflict also refreshes the page, so that it shows the present state.
      return reload(client);
    },
    onSuccess: (answer) => {
      if (!shownOf(answer)) dialog.current?.close();
    },
  });
  // This also applies if the dialog was closed before the answer.
  useEffect(() => {
    if (!run && !change.isPending && !change.isIdle) change.reset();
  }, [run, change.status]);
  const send = (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isSent.current || !run) return;
    isSent.current = true;
    const fields = textsOf(event.currentTarget);
    sent.current = () => run(fields);
    change.mutate();
  };
  return { change, send, reload: () => reload(client) };
}

const UNSAVED = 'The new URLs are not shown again. Close without saving them?';

/** Otherwise Escape would close the dialog without asking, wherever the focus is. */
function useEscape(dialog: RefObject<HTMLDialogElement>, isOpen: boolean): void {
  useEffect(() => {
    if (!isOpen) return undefined;
    const ask = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !mayClose(dialog.current)) event.preventDefault();
    };
    addEventListener('keydown', ask);
    return () => removeEventListener('keydown', ask);
  }, [isOpen]);
}

/** Asks before the user closes an answer that no other page shows. */
const mayClose = (dialog: HTMLDialogElement | null): boolean =>
  !dialog?.querySelector('[data-unsaved]') || confirm(UNSAVED);

/** When a row no longer has its button, the focus moves to the table or the bar, and not to the top of the page. */
function useFocusAfter(dialog: RefObject<HTMLDialogElement>) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    const [own, asked] = [button.current, dialog.current];
    return () => {
      const focused = document.activeElement;
      if (own === focused || asked?.contains(focused))
        own?.closest<HTMLElement>('section[tabindex]')?.focus();
    };
  }, [dialog]);
  return button;
}

/** The answer `{"status": "pending"}` alone: other answers have a status of their own. */
const isPending = (answer: unknown): boolean => JSON.stringify(answer) === '{"status":"pending"}';

const PENDING = <p>The change is stored. It takes effect as soon as Redis answers.</p>;

type SecretProps = { readonly label: string; readonly value: string; readonly onCopied?: () => void };

/** A secret that only one answer shows. */
export function Secret({ label, value, onCopied }: SecretProps) {
  const id = useId();
  const [isCopied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(value).then(() => {
      setCopied(true);
      onCopied?.();
    });
  return (
    <>
      <p class="field">
        <label for={id}>{label}</label>
        <input
          id={id}
          readOnly
          autocomplete="off"
          value={value}
          onFocus={(event) => event.currentTarget.select()}
        />
        <small class="soft">Copy it now: it is not shown again.</small>
      </p>
      <p>
        <button type="button" onClick={copy}>
          {isCopied ? 'Copied' : 'Copy'}
        </button>
      </p>
    </>
  );
}
