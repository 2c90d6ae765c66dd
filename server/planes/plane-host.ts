// The main thread's side of a data plane: starts the worker thread, calls it with a time limit, receives its reports,
// and detects its end. Has few imports, so that the thread can start before the rest of the main thread is loaded.

import { Worker } from 'node:worker_threads';
import type { Endpoint } from '../../control/monitor/endpoint.ts';
import { ExitError } from '../lifecycle/exit-error.ts';
import type {
  ConfigChange,
  ControlAnswer,
  ControlHandlers,
  LogLevel,
  PlaneArgument,
  PlaneCall,
  PlaneCallName,
  PlaneData,
  PlaneReport,
  PlaneResult,
} from './messages.ts';

export interface PlaneListener {
  configChanged(change: ConfigChange): void;
  log(level: LogLevel, message: string, fields: Record<string, unknown> | undefined): void;
  /** The plane ended unexpectedly after it was ready. */
  died(reason: string): void;
  /** Handlers of its calls; refused when absent. */
  control?: ControlHandlers;
}

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
  timer: NodeJS.Timeout;
}

/** The data planes of a server. */
export interface Planes {
  redis: PlaneHost;
  influx: PlaneHost;
}

export class PlaneHost {
  readonly name: string;
  readonly #script: URL;
  readonly #waiting = new Map<number, Waiting>();
  #listener: PlaneListener | undefined;
  #worker: Worker | undefined;
  #nextId = 1;
  #state: 'new' | 'loading' | 'starting' | 'ready' | 'stopped' = 'new';
  #started:
    | { resolve: (endpoints: Endpoint[]) => void; reject: (error: Error) => void }
    | undefined;
  /** Last message or error before it ended. */
  #lastWords = '';

  constructor(name: string, script: URL) {
    this.name = name;
    this.#script = script;
  }

  /** Starts the thread, which loads its code and waits for its data. Until then it keeps no process alive. */
  load(): void {
    this.#state = 'loading';
    const worker = new Worker(this.#script, { name: `${this.name}-plane` });
    this.#worker = worker;
    worker.on('message', (report: PlaneReport) => this.#heard(report));
    worker.on('messageerror', (error) => this.#ended(`sent what cannot be read: ${error.message}`));
    worker.on('error', (error: unknown) => {
      this.#lastWords = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    worker.on('exit', (code) => this.#ended(this.#lastWords || `exited with code ${code}`));
    worker.unref();
  }

  /** Resolves when the plane serves; however long its recovery takes. */
  start(data: PlaneData, listener: PlaneListener): Promise<Endpoint[]> {
    this.#listener = listener;
    if (this.#state === 'new') this.load();
    // The plane may have failed while loading.
    if (this.#state !== 'loading') return Promise.reject(new ExitError(this.#lastWords));
    this.#state = 'starting';
    return new Promise((resolve, reject) => {
      this.#started = { resolve, reject };
      this.#worker!.ref();
      this.#worker!.postMessage(data);
    });
  }

  get isUp(): boolean {
    return this.#state === 'ready';
  }

  call<K extends PlaneCallName>(
    call: K,
    argument: PlaneArgument<K>,
    timeoutMs: number,
  ): Promise<PlaneResult<K>> {
    if (this.#state !== 'ready')
      return Promise.reject(new Error(`the ${this.name} plane is not up`));
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        reject(new Error(`the ${this.name} plane did not answer ${call} within ${timeoutMs} ms`));
      }, timeoutMs);
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject, timer });
      this.#worker!.postMessage({ id, call, argument } satisfies PlaneCall);
    });
  }

  /** Has it make everything safe and ends its thread. Rejects if it could not; the thread ends anyway. */
  async stop(timeoutMs: number): Promise<void> {
    try {
      if (this.#state === 'ready') await this.call('stop', undefined, timeoutMs);
    } finally {
      await this.terminate();
    }
  }

  /** Ends the thread at once. */
  async terminate(): Promise<void> {
    this.#state = 'stopped';
    await this.#worker?.terminate();
  }

  #heard(report: PlaneReport): void {
    switch (report.type) {
      case 'answer':
        this.#take(report.id)?.resolve(report.value);
        break;
      case 'failed':
        this.#take(report.id)?.reject(new Error(report.error));
        break;
      case 'ready':
        if (this.#state !== 'starting') break;
        this.#state = 'ready';
        this.#started!.resolve(report.endpoints);
        break;
      case 'configChanged':
        this.#listener!.configChanged({ key: report.key, value: report.value });
        break;
      case 'log':
        this.#listener!.log(report.level, report.msg, report.fields);
        break;
      case 'asks':
        void this.#answer(report);
        break;
      case 'fatal':
        this.#lastWords = report.message;
        this.#ended(report.message);
        break;
    }
  }

  async #answer({ id, call, argument }: PlaneReport & { type: 'asks' }): Promise<void> {
    const answer: ControlAnswer = { answers: id };
    try {
      // Which argument belongs to which call is fixed by ControlCalls on both sides.
      const handler = this.#listener?.control?.[call] as
        | ((argument: unknown) => unknown)
        | undefined;
      if (handler === undefined) throw new Error(`no handler for ${call}`);
      answer.value = await handler(argument);
    } catch (error) {
      answer.error = error instanceof Error ? error.message : String(error);
    }
    if (this.#state !== 'stopped') this.#worker?.postMessage(answer);
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    clearTimeout(waiting?.timer);
    return waiting;
  }

  #ended(reason: string): void {
    const state = this.#state;
    this.#state = 'stopped';
    this.#lastWords = reason;
    for (const id of this.#waiting.keys()) {
      this.#take(id)!.reject(new Error(`the ${this.name} plane is gone: ${reason}`));
    }
    if (state === 'starting') this.#started!.reject(new ExitError(reason));
    else if (state === 'ready') this.#listener!.died(reason);
  }
}
