// Limit of one reply of a scan (Amazon, "Fairness in multi-tenant systems"): rows are added until
// the next would exceed it; the reply then names the row to continue with. The server of scans
// keeps one instance and resets it for every reply.

interface ReplyPageOptions {
  /** Bytes of a reply with all that is around its rows; Infinity for replies of any size. */
  limitBytes: number;
  /** Reserved bytes: for the frame of the reply, and for the row to continue with. */
  frameBytes: number;
}

const replyPageDefaults: ReplyPageOptions = { limitBytes: 1_000_000, frameBytes: 256 };

export class ReplyPage {
  readonly #limit: number;
  readonly #frame: number;
  #bytes: number;
  #rows = 0;

  constructor(options: Partial<ReplyPageOptions> = {}) {
    const { limitBytes, frameBytes } = { ...replyPageDefaults, ...options };
    this.#limit = limitBytes;
    this.#frame = frameBytes;
    this.#bytes = frameBytes;
  }

  /** Current size of the reply. */
  get bytes(): number {
    return this.#bytes;
  }

  get rows(): number {
    return this.#rows;
  }

  begin(): void {
    this.#bytes = this.#frame;
    this.#rows = 0;
  }

  /**
   * Adds a row if there is room; if not, it is the first of the next reply. A row too large for any reply is one by
   * itself: a scan that could not pass it would never end.
   */
  add(rowBytes: number): boolean {
    if (this.#rows > 0 && this.#bytes + rowBytes > this.#limit) return false;
    this.#bytes += rowBytes;
    this.#rows++;
    return true;
  }
}
