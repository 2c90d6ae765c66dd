// Frames that are written to a segment with one call.

const runBytes = 256 * 1024;

export class FrameRun {
  bytes = 0;
  #buffer: Buffer | undefined;
  /** Which frames they are, and where in the run each begins. */
  #frames: { i: number; offset: number }[] = [];

  get buffer(): Buffer {
    return (this.#buffer ??= Buffer.allocUnsafeSlow(runBytes));
  }

  clear(): void {
    this.#frames = [];
    this.bytes = 0;
  }

  hasRoom(length: number): boolean {
    return this.bytes + length <= runBytes;
  }

  /** Copies a sealed frame. */
  add(i: number, frame: Buffer, length: number): void {
    frame.copy(this.buffer, this.bytes, 0, length);
    this.#frames.push({ i, offset: this.bytes });
    this.bytes += length;
  }

  /** Tells where each of its frames went, now that the segment ends with them, and begins anew. */
  written(
    segment: number,
    segmentEnd: number,
    placed: (i: number, segment: number, offset: number) => void,
  ): void {
    const start = segmentEnd - this.bytes;
    for (const { i, offset } of this.#frames.splice(0)) placed(i, segment, start + offset);
    this.bytes = 0;
  }
}
