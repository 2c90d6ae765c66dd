// Finds pods that are at fault: X-Stor, section 7. Two halves suspect: collectors that probe the
// pods of their own node by real reads and writes, and gateways that watch the errors and latencies
// of real requests. Neither decides: a suspicion is confirmed by probes from several other nodes.
// Plain code, driven by reports with their times; the reaction to a fault (moves of leaders,
// rebuilding of replicas) is a workflow.

export interface DetectorOptions {
  /** Which halves suspect. */
  active?: boolean;
  passive?: boolean;
  /** Failed probes in a row that make a suspicion. */
  failedProbes?: number;
  /** Reports of gateways in a row without a request that succeeded. */
  failedReports?: number;
  /** Share of a window's requests that fail. */
  errorShare?: number;
  /** Latency over its baseline. */
  slowFactor?: number;
  /** Length of the window of requests, milliseconds. */
  windowMs?: number;
  /** Minimum number of requests in a window for its figures to count. */
  leastRequests?: number;
  /** Milliseconds of silence after which a collector is suspected, with its pods. */
  silenceMs?: number;
  /** Number of asked nodes that must confirm a fault. */
  asked?: number;
  agree?: number;
  /** After a suspicion that was not confirmed. */
  pauseMs?: number;
}

const detectorDefaults: Required<DetectorOptions> = {
  active: true,
  passive: true,
  failedProbes: 2,
  failedReports: 2,
  errorShare: 0.05,
  slowFactor: 5,
  windowMs: 5000,
  leastRequests: 20,
  silenceMs: 3000,
  asked: 3,
  agree: 2,
  pauseMs: 2000,
};

type Symptom = 'silent' | 'failing' | 'slow' | 'corrupt';

export interface Probe {
  /** The pod answered, and rightly. */
  ok: boolean;
  /** A checksum was wrong. */
  isCorrupt?: boolean;
  latencyMs: number;
}

/** One gateway's observations of a pod since its last report. Keep-alives of idle connections count as requests. */
export interface Served {
  requests: number;
  errors: number;
  /** Errors that were wrong checksums. */
  corrupt: number;
  /** 99th percentile, milliseconds. */
  p99Ms: number;
}

interface Suspicion {
  pod: number;
  symptom: Symptom;
  since: number;
}

interface PodState {
  /** Moving averages of the latency of probes and of requests, in milliseconds. */
  probeMs: number | undefined;
  requestMs: number | undefined;
  failedInRow: number;
  slowInRow: number;
  failedReportsInRow: number;
  lastProbeAt: number | undefined;
  window: (Served & { at: number })[];
  suspicion: Suspicion | undefined;
  quietUntil: number;
}

/** Weight of one normal report in a baseline. */
const baselineWeight = 0.02;

export class FaultDetector {
  readonly #options: Required<DetectorOptions>;
  readonly #pods = new Map<number, PodState>();

  constructor(options: DetectorOptions = {}) {
    this.#options = { ...detectorDefaults, ...options };
  }

  /** A collector has probed a pod of its node. */
  probed(pod: number, { ok, isCorrupt = false, latencyMs }: Probe, now: number): void {
    if (!this.#options.active) return;
    const state = this.#state(pod);
    state.lastProbeAt = now;
    if (isCorrupt) {
      this.#suspect(pod, 'corrupt', now);
      return;
    }
    state.failedInRow = ok ? 0 : state.failedInRow + 1;
    const { probeMs } = state;
    const isSlow = ok && probeMs !== undefined && latencyMs > probeMs * this.#options.slowFactor;
    state.slowInRow = isSlow ? state.slowInRow + 1 : 0;
    if (ok && !isSlow) state.probeMs = followed(probeMs, latencyMs);
    if (state.failedInRow >= this.#options.failedProbes) this.#suspect(pod, 'failing', now);
    if (state.slowInRow >= this.#options.failedProbes) this.#suspect(pod, 'slow', now);
  }

  /** A gateway reports on a pod. */
  served(pod: number, served: Served, now: number): void {
    const { passive, windowMs, errorShare, slowFactor, leastRequests, failedReports } =
      this.#options;
    if (!passive) return;
    const state = this.#state(pod);
    state.window.push({ ...served, at: now });
    while (state.window[0]!.at <= now - windowMs) state.window.shift();
    if (served.corrupt > 0) this.#suspect(pod, 'corrupt', now);
    let [requests, errors, slow] = [0, 0, 0];
    const { requestMs } = state;
    for (const each of state.window) {
      requests += each.requests;
      errors += each.errors;
      const isSlow = requestMs !== undefined && each.p99Ms > requestMs * slowFactor;
      if (isSlow) slow += each.requests;
    }
    const isSlowNow = requestMs !== undefined && served.p99Ms > requestMs * slowFactor;
    if (served.errors < served.requests && !isSlowNow) {
      state.requestMs = followed(requestMs, served.p99Ms);
    }
    const hasFailed = served.requests > 0 && served.errors >= served.requests;
    state.failedReportsInRow = hasFailed ? state.failedReportsInRow + 1 : 0;
    if (state.failedReportsInRow >= failedReports) this.#suspect(pod, 'failing', now);
    if (requests < leastRequests) return;
    if (errors > requests * errorShare) this.#suspect(pod, 'failing', now);
    // The 99th percentile of the window is slow when a fifth of its requests are in slow reports.
    else if (slow >= requests / 5) this.#suspect(pod, 'slow', now);
  }

  /** Pods that `asked` nodes should probe now, each of them twice. */
  due(now: number): Suspicion[] {
    const { silenceMs, active } = this.#options;
    const found: Suspicion[] = [];
    for (const [pod, state] of this.#pods) {
      const { lastProbeAt } = state;
      if (active && lastProbeAt !== undefined && now - lastProbeAt >= silenceMs) {
        this.#suspect(pod, 'silent', now);
      }
      if (state.suspicion !== undefined) found.push(state.suspicion);
    }
    return found;
  }

  /** The probes of each node that was asked. True: the pod is at fault. */
  confirmed(pod: number, probes: readonly (readonly Probe[])[], now: number): boolean {
    const { agree, pauseMs } = this.#options;
    const state = this.#state(pod);
    const bad = probes.filter(
      (ofNode) => ofNode.length > 0 && ofNode.every((probe) => this.#isBad(state, probe)),
    );
    state.suspicion = undefined;
    if (bad.length >= agree) return true;
    state.quietUntil = now + pauseMs;
    return false;
  }

  forget(pod: number): void {
    this.#pods.delete(pod);
  }

  #isBad({ probeMs, requestMs }: PodState, { ok, isCorrupt = false, latencyMs }: Probe): boolean {
    const normal = probeMs ?? requestMs;
    const isSlow = normal !== undefined && latencyMs > normal * this.#options.slowFactor;
    return !ok || isCorrupt || isSlow;
  }

  #suspect(pod: number, symptom: Symptom, now: number): void {
    const state = this.#state(pod);
    if (now < state.quietUntil) return;
    state.suspicion ??= { pod, symptom, since: now };
  }

  #state(pod: number): PodState {
    let state = this.#pods.get(pod);
    if (state === undefined) {
      state = {
        probeMs: undefined,
        requestMs: undefined,
        failedInRow: 0,
        slowInRow: 0,
        failedReportsInRow: 0,
        lastProbeAt: undefined,
        window: [],
        suspicion: undefined,
        quietUntil: -Infinity,
      };
      this.#pods.set(pod, state);
    }
    return state;
  }
}

function followed(baseline: number | undefined, value: number): number {
  return baseline === undefined ? value : baseline + (value - baseline) * baselineWeight;
}
