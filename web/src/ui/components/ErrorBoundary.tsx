/** What cannot be drawn takes nothing else with it: React would take the whole page away. */

import { Component, type ReactNode } from "react";

interface Props {
  children: ReactNode;
  /** In its place. */
  instead: ReactNode;
  /** When this is another, it is tried again. */
  of?: unknown;
}

export class ErrorBoundary extends Component<Props, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override componentDidUpdate(before: Props): void {
    if (this.state.failed && before.of !== this.props.of) this.setState({ failed: false });
  }

  override render(): ReactNode {
    return this.state.failed ? this.props.instead : this.props.children;
  }
}
