// Whether the log of this process has kept commands that are answered in a later tick than they ran in. The answers of a
// tick wait for the log together; these wait by themselves, so that a command which was lost can run again.

import type { LocalPod } from '../../../contracts/local-pod.ts';

interface Waiting {
  readonly pod: LocalPod;
  readonly losses: number;
  readonly resolve: (isKept: boolean) => void;
}

export class LateOutcomes {
  #waiting: Waiting[] = [];

  /** Of a command that has run: `losses` is the pod's count when it began. False too while that is not known. */
  isKept(pod: LocalPod, losses: number): Promise<boolean> {
    return new Promise((resolve) => {
      // They go to the log together, usually with the tick of this round of the event loop.
      if (this.#waiting.push({ pod, losses, resolve }) === 1) setImmediate(() => this.#ask());
    });
  }

  #ask(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const pod of new Set(waiting.map((one) => one.pod))) {
      const position = pod.flushTick();
      const { losses } = pod;
      const those = waiting.filter((one) => one.pod === pod);
      const tell = (isCommitted: boolean): void => {
        for (const { losses: before, resolve } of those) resolve(isCommitted && before === losses);
      };
      if (position < 0) tell(true);
      else pod.whenSettled(position, (outcome) => tell(outcome === 'committed'));
    }
  }
}
