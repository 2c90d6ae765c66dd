// Pods of rows for gateways in other processes: serves links of the purpose `pods`. An event-loop
// tick ends for all links and pods together.

import type { ClusterLink, LinkHandler } from '../../cluster-links/cluster-link.ts';
import type { LocalPod } from '../../contracts/local-pod.ts';
import type { Answers } from './answers.ts';
import { GatewayLink } from './gateway-link.ts';
import { NodeScripts } from './node-scripts.ts';
import type { PodServerOptions, PodTurns } from './served-pods.ts';

/** Changes of a pod in this tick. */
interface TurnOfPod {
  readonly pod: LocalPod;
  /** To send once it is settled. */
  answers: Answers[];
}

export class PodServer implements PodTurns {
  readonly options: PodServerOptions;
  readonly scripts: NodeScripts;
  readonly #links = new Set<GatewayLink>();
  readonly #pods = new Map<LocalPod, TurnOfPod>();
  /** The pod that was asked last: most turns are of one. */
  #lastPod: TurnOfPod | undefined;
  /** Answers that wait for no log. */
  readonly #answers: Answers[] = [];
  #isOpen = false;
  #isScheduled = false;
  /** Counts turns. */
  turn = 0;

  constructor(options: PodServerOptions) {
    this.options = options;
    this.scripts = new NodeScripts(options.scriptsOf);
  }

  /** Serves a link of a gateway (`ClusterListener.serve`). */
  open(link: ClusterLink): LinkHandler {
    const gateway = new GatewayLink(this, link, () => {
      this.#links.delete(gateway);
      const { node } = gateway;
      // The node may have another link by now.
      if (![...this.#links].some((one) => one.node === node)) this.options.closed?.(node);
    });
    this.#links.add(gateway);
    this.options.opened?.(gateway.node);
    return gateway;
  }

  /** Requests are about to run, or a row has changed. */
  beginTurn(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.turn++;
    this.options.admission?.beginTick(performance.now());
  }

  /** Ends the processing of a read. A gateway that sends alone does not share its time slices. */
  readEnd(): void {
    if (!this.#isOpen) return;
    if (this.#links.size === 1) this.#endTurn();
    else this.schedule();
  }

  /** Ends the turn after this round of the event loop. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#endTurn();
    });
  }

  ran(pod: LocalPod): TurnOfPod {
    if (this.#lastPod?.pod === pod) return this.#lastPod;
    let turn = this.#pods.get(pod);
    if (turn === undefined) this.#pods.set(pod, (turn = { pod, answers: [] }));
    this.#lastPod = turn;
    return turn;
  }

  answered(answers: Answers, pod: LocalPod | undefined, losses: number): void {
    if (answers.isInTurn) {
      answers.losses = Math.min(answers.losses, losses);
      return;
    }
    answers.isInTurn = true;
    answers.losses = losses;
    if (pod === undefined) this.#answers.push(answers);
    else this.ran(pod).answers.push(answers);
  }

  #endTurn(): void {
    this.#isOpen = false;
    this.#lastPod = undefined;
    for (const link of this.#links) link.turnEnds();
    try {
      for (const turn of this.#pods.values()) this.#endOf(turn);
    } catch (error) {
      // Nothing of this turn is in the log: no gateway may be told that it was done.
      for (const link of this.#links) link.close();
      this.options.failed(error);
      return;
    }
    this.#pods.clear();
    for (const answers of this.#answers) {
      answers.isInTurn = false;
      answers.flush();
    }
    this.#answers.length = 0;
    for (const link of this.#links) link.turnEnded();
  }

  #endOf({ pod, answers }: TurnOfPod): void {
    const position = pod.flushTurn();
    const { losses } = pod;
    for (const one of answers) {
      one.isInTurn = false;
      if (one.losses !== losses) one.hold()('unknown');
      else if (position < 0) one.flush();
      else {
        const settle = one.hold();
        pod.whenSettled(position, settle);
      }
    }
  }

  close(): void {
    for (const link of this.#links) link.close();
  }
}
