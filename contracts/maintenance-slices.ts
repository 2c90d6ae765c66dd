// Time slices for an engine's own work, such as flushes, compaction and checkpoints, on the thread of its pod.

export interface MaintenanceSlices {
  /**
   * Runs one slice of work in a later event-loop tick, when the CPU scheduler of the pod lets it, and resolves to its
   * result. `work` is handed the length of the slice in milliseconds. `isUrgent` while requests wait for the work.
   */
  run<T>(isUrgent: boolean, work: (sliceMs: number) => T): Promise<T>;
}

/** Length of a slice while no tenants compete for the thread, in milliseconds. */
export const uncontendedSliceMs = 4;

/** For an engine without a scheduler: a slice each tick. */
export const everyTick: MaintenanceSlices = {
  run: (_isUrgent, work) =>
    new Promise((resolve, reject) => {
      setImmediate(() => {
        try {
          resolve(work(uncontendedSliceMs));
        } catch (error) {
          reject(error);
        }
      });
    }),
};
