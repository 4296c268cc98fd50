import { Component, type ComponentChildren } from 'preact';
import { Failed } from './answer.tsx';

type GuardProps = {
  /** The address of the page. Another address is a new try. */
  readonly at: string;
  readonly children: ComponentChildren;
};

/** Shows an error of a page in place of the page, so that the navigation and the other pages still work. */
export class Guard extends Component<GuardProps, { readonly error?: Error; readonly failedAt?: string }> {
  override componentDidCatch(error: Error) {
    // As without this component, for whoever looks into the browser's log.
    reportError(error);
    this.setState({ error, failedAt: this.props.at });
  }
  override render({ at, children }: GuardProps) {
    const { error, failedAt } = this.state;
    return error && failedAt === at ? (
      <Failed error={new Error(`This page failed: ${error.message}`)} />
    ) : (
      children
    );
  }
}
