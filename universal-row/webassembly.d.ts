// The part of the standard WebAssembly API that this project uses: Node's types of version 20 leave it out.

declare namespace WebAssembly {
  type Imports = Record<string, Record<string, unknown>>;

  class Module {
    private readonly module: unique symbol;
    constructor(bytes: Uint8Array);
  }

  class Memory {
    readonly buffer: ArrayBuffer;
  }

  class Instance {
    readonly exports: unknown;
    constructor(module: Module, imports?: Imports);
  }
}
