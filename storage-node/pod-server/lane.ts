// Requests of one client of a gateway, which run one after another.

import { batchRequest, type PodRequest } from '../../contracts/pod-admission.ts';
import { Arguments } from '../../universal-row/arguments.ts';
import { Action, type Command, type NotRun } from '../../universal-row/command.ts';
import type { Session } from '../../universal-row/protocol/row-messages.ts';
import type { WireReader } from '../../universal-row/protocol/wire.ts';
import { RowWork } from '../../universal-row/row-work.ts';
import type { Answers } from './answers.ts';
import type { NodeScript, ScriptMessage } from './node-scripts.ts';

export class Lane {
  readonly id: number;
  readonly session: Session = {
    tenant: 0,
    table: 0,
    first: 0,
    count: 1,
    version: 2,
    epoch: 0,
    isMetered: false,
  };
  /** Shared by all commands that complete at once. Slower commands get one of their own. */
  readonly work = new RowWork();
  readonly request: { -readonly [Key in keyof PodRequest]: PodRequest[Key] };
  command: Command;
  /** A request takes its time, or waits for the CPU scheduler: those behind it wait. */
  isBusy = false;
  /** Command in progress, if asynchronous. */
  underWay: Command | undefined;
  /** The tick in which the CPU scheduler let its tenant have the thread. */
  admittedIn = 0;
  /** Requests that wait, as they came, and when they did. */
  readonly waiting: { bytes: Buffer; cameAt: number }[] = [];
  /** Buffer with its last answer; undefined when that has been sent. */
  answers: Answers | undefined;
  /** The scripts of the request under way. */
  scripts: NodeScript['host'][] = [];
  /** Why a request was not run: those that follow are not, either, until the gateway begins anew with a session. */
  refusal: NotRun | undefined;

  constructor(id: number, resume: (lane: Lane) => void) {
    this.id = id;
    this.request = batchRequest(0, () => resume(this));
    this.command = this.#newCommand();
  }

  /** A request that was just read, from `at` on, waits. */
  wait(reader: WireReader, at: number, cameAt: number): void {
    this.waiting.push({ bytes: Buffer.from(reader.buf.subarray(at, reader.pos)), cameAt });
  }

  /** Messages published by the scripts of the request that ends. */
  takeMessages(): ScriptMessage[] {
    const messages = this.scripts.flatMap((script) => script.messages);
    this.scripts = [];
    return messages;
  }

  #newCommand(): Command {
    const { session } = this;
    return {
      action: Action.fetch,
      name: '',
      transform: noTransform,
      grows: false,
      table: 0,
      span: { first: session.first, count: session.count },
      args: new Arguments(),
      work: this.work,
    };
  }

  /** `session` has changed. */
  sessionChanged(): void {
    const { tenant, first, count } = this.session;
    this.command.span = { first, count };
    this.command.tenant = tenant;
    this.request.tenant = tenant;
  }

  /** The command under way keeps its object: those behind it get another. */
  renewCommand(): void {
    this.command = this.#newCommand();
    this.command.work = this.work;
    this.sessionChanged();
  }
}

function noTransform(): void {
  throw new RangeError('a command without a transform');
}
