// Pods of rows for gateways in other processes: serves links of the purpose `pods`. An event-loop
// tick ends for all links and pods together.

import type { ClusterLink, LinkHandler } from '../../cluster-links/cluster-link.ts';
import type { LocalPod } from '../../contracts/local-pod.ts';
import type { Answers } from './answers.ts';
import { GatewayLink } from './gateway-link.ts';
import { NodeScripts } from './node-scripts.ts';
import type { PodServerOptions, PodTicks } from './served-pods.ts';

/** Changes of a pod in this tick. */
interface TickOfPod {
  readonly pod: LocalPod;
  /** To send once it is settled. */
  answers: Answers[];
}

export class PodServer implements PodTicks {
  readonly options: PodServerOptions;
  readonly scripts: NodeScripts;
  readonly #links = new Set<GatewayLink>();
  readonly #pods = new Map<LocalPod, TickOfPod>();
  /** The pod that was asked last: most ticks are of one. */
  #lastPod: TickOfPod | undefined;
  /** Answers that wait for no log. */
  readonly #answers: Answers[] = [];
  #isOpen = false;
  #isScheduled = false;
  /** Counts ticks. */
  tick = 0;

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
  beginTick(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.tick++;
    this.options.admission?.beginTick(performance.now());
  }

  /** Ends the processing of a read. A gateway that sends alone does not share its time slices. */
  readEnd(): void {
    if (!this.#isOpen) return;
    if (this.#links.size === 1) this.#endTick();
    else this.schedule();
  }

  /** Ends the tick after this round of the event loop. */
  schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#endTick();
    });
  }

  ran(pod: LocalPod): TickOfPod {
    if (this.#lastPod?.pod === pod) return this.#lastPod;
    let tick = this.#pods.get(pod);
    if (tick === undefined) this.#pods.set(pod, (tick = { pod, answers: [] }));
    this.#lastPod = tick;
    return tick;
  }

  answered(answers: Answers, pod: LocalPod | undefined, losses: number): void {
    if (answers.isInTick) {
      answers.losses = Math.min(answers.losses, losses);
      return;
    }
    answers.isInTick = true;
    answers.losses = losses;
    if (pod === undefined) this.#answers.push(answers);
    else this.ran(pod).answers.push(answers);
  }

  #endTick(): void {
    this.#isOpen = false;
    this.#lastPod = undefined;
    for (const link of this.#links) link.tickEnds();
    try {
      for (const tick of this.#pods.values()) this.#endOf(tick);
    } catch (error) {
      // Nothing of this tick is in the log, so no gateway may receive its answers.
      for (const link of this.#links) link.close();
      this.options.failed(error);
      return;
    }
    this.#pods.clear();
    for (const answers of this.#answers) {
      answers.isInTick = false;
      answers.flush();
    }
    this.#answers.length = 0;
    for (const link of this.#links) link.tickEnded();
  }

  #endOf({ pod, answers }: TickOfPod): void {
    const position = pod.flushTick();
    const { losses } = pod;
    for (const one of answers) {
      one.isInTick = false;
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
