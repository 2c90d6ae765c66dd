// The admission stage of a pod whose thread is contended: all requests are queued until the test resumes them.

import type { AdmitResult, PodAdmission, PodRequest } from '../contracts/pod-admission.ts';

export class QueueAll implements PodAdmission {
  readonly queued: PodRequest[] = [];
  result: AdmitResult = 'queued';

  admit(request: PodRequest): AdmitResult {
    if (this.result === 'queued') this.queued.push(request);
    return this.result;
  }
  isContended(): boolean {
    return this.result === 'queued';
  }
  beginTick(): void {}
  requeue(): void {}
  leave(): boolean {
    return false;
  }
  charge(): void {}
  spent(): void {}
  isSliceOver(): boolean {
    return false;
  }
}
