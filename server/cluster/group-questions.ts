// Questions between nodes about replica groups. Each node answers for the replicas of its own planes.

import {
  type ClusterView,
  type MinuteSpan,
  mostMinutesAsked,
  type PlaneMinutes,
  type ReplicaStatus,
} from '../../contracts/cluster.ts';
import type { Json } from '../../control/metadata/document-store.ts';
import type { PlaneHost, Planes } from '../planes/plane-host.ts';
import { type ControlHandlers, ControlError } from './cluster-metadata.ts';

export const groupQuestions = {
  /** Argument null: `ReplicaStatus` of each replica on the node. */
  status: 'groups/status',
  /** Argument `MinuteSpan` of at most `mostMinutesAsked`: `PlaneMinutes` of each plane of the node. */
  minutes: 'groups/minutes',
  /** Argument `TransferOrder`: null once the other node leads. */
  transfer: 'groups/transfer',
} as const;

export interface TransferOrder {
  group: number;
  /** Number of the node whose replica is to lead. */
  to: number;
}

const statusTimeoutMs = 1500;
const transferTimeoutMs = 2000;
const pollMs = 20;

/** Replicas of both planes. A plane that starts, or is too busy to answer, is left out. */
export async function groupStatus(planes: Planes): Promise<ReplicaStatus[]> {
  const asked = Object.values(planes).map((plane) =>
    plane.isUp ? plane.call('groupStatus', undefined, statusTimeoutMs) : [],
  );
  const answers = await Promise.allSettled(asked);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
}

/** Loads of the replicas of both planes. A plane that starts, or is too busy to answer, is left out. */
export async function groupMinutes(planes: Planes, span: MinuteSpan): Promise<PlaneMinutes[]> {
  if (!(span.to - span.from <= mostMinutesAsked)) {
    throw new ControlError(`at most ${mostMinutesAsked} minutes at once`, 'refused');
  }
  const asked = Object.values(planes).flatMap((plane) =>
    plane.isUp ? [plane.call('groupMinutes', span, statusTimeoutMs)] : [],
  );
  const answers = await Promise.allSettled(asked);
  return answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
}

/**
 * Resolves once the other node leads, as far as known here. Throws if the group is not led on this node, or if the
 * other node does not take over in time.
 */
export async function transferGroup(planes: Planes, { group, to }: TransferOrder): Promise<void> {
  for (const plane of Object.values(planes) as PlaneHost[]) {
    if (!plane.isUp) continue;
    const status = async (): Promise<ReplicaStatus | undefined> => {
      const all = await plane.call('groupStatus', undefined, statusTimeoutMs);
      return all.find((one) => one.group === group);
    };
    if ((await status()) === undefined) continue;
    await plane.call('transferGroup', { group, to }, transferTimeoutMs);
    const until = performance.now() + transferTimeoutMs;
    while (performance.now() < until) {
      if ((await status())?.leader === to) return;
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
    throw new ControlError(`node ${to} did not take over group ${group} in time`, 'refused');
  }
  throw new ControlError(`there is no replica of group ${group} here`, 'refused');
}

/** Before an orderly stop: transfers the leadership of groups led here, as far as that is soon possible. */
export async function handOver(
  planes: Planes,
  view: ClusterView,
  reachable: ReadonlySet<number>,
): Promise<void> {
  const led = (await groupStatus(planes)).filter(({ role }) => role === 'leader');
  const groups = new Map(view.groups.map((group) => [group.group, group]));
  const asked = led.map(async ({ group, replica, voters }, i) => {
    const heirs = (groups.get(group)?.replicas ?? []).filter(
      (one) => one.replica !== replica && voters.includes(one.replica) && reachable.has(one.node),
    );
    const heir = heirs[i % heirs.length];
    if (heir !== undefined) await transferGroup(planes, { group, to: heir.node });
  });
  // Groups that are not handed over elect a new leader.
  await Promise.allSettled(asked);
}

export function answerGroupQuestions(handlers: ControlHandlers, planes: Planes): void {
  handlers.on(groupQuestions.status, async () => {
    return (await groupStatus(planes)) as unknown as Json;
  });
  handlers.on(groupQuestions.minutes, async (body) => {
    return (await groupMinutes(planes, body as unknown as MinuteSpan)) as unknown as Json;
  });
  handlers.on(groupQuestions.transfer, async (body) => {
    await transferGroup(planes, body as unknown as TransferOrder);
    return null;
  });
}
