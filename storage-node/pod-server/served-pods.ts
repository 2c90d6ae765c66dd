// Interface of the served pods for a gateway's link.

import type { PodAdmission } from '../../contracts/pod-admission.ts';
import type { LocalPod } from '../../contracts/local-pod.ts';
import type { MaybePromise } from '../../universal-row/maybe-promise.ts';
import type { Answers } from './answers.ts';
import type { NodeScripts, ScriptMessage, TenantScriptState } from './node-scripts.ts';

/** Where a table's rows are. */
export interface ServedPod {
  executor: LocalPod;
  /** The answer may come after this tick. */
  mayWait: boolean;
}

export interface PodServerOptions {
  /** Undefined where this process has no rows of it. Asked again for each frame of requests: pods come and go while links are open. */
  podOf: (table: number) => ServedPod | undefined;
  /**
   * Schedules the requests of lanes beside other work of the thread; undefined when the caller
   * schedules them.
   */
  admission?: PodAdmission | undefined;
  /**
   * Sends a message of a tenant's script to its subscribers on all nodes. Without it scripts cannot
   * publish.
   */
  publish?: ((tenant: number, message: ScriptMessage) => void) | undefined;
  /**
   * Script state that a tenant shares with clients of this process; undefined where it has none.
   */
  scriptsOf?: ((tenant: number) => TenantScriptState | undefined) | undefined;
  /** The gateway of a node is there, perhaps again, or is no more. */
  opened?: ((node: number) => void) | undefined;
  closed?: ((node: number) => void) | undefined;
  /** Answers a gateway's question about the pods as a whole. */
  answer: (question: unknown) => MaybePromise<unknown>;
  report: (level: 'info' | 'warn' | 'error', message: string, fields?: object) => void;
  /** The log could not take the writes. */
  failed: (error: unknown) => void;
}

/** Ticks of the event loop, which end for all links and pods together. */
export interface PodTicks {
  readonly options: PodServerOptions;
  readonly scripts: NodeScripts;
  /** Counts ticks. */
  readonly tick: number;
  /** Requests are about to run, or a row has changed. */
  beginTick(): void;
  /** Commands ran on the pod: their writes go to the log at the end of the tick. */
  ran(pod: LocalPod): void;
  /** There are answers to send at the end of the tick. `losses` is the pod's count when it evaluated them. */
  answered(answers: Answers, pod: LocalPod | undefined, losses: number): void;
  /** Ends the processing of a read. */
  readEnd(): void;
  /** Ends the tick after this round of the event loop. */
  schedule(): void;
}
