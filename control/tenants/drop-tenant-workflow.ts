// Drops a tenant that is `dropping`: its data first, then its documents, the tenant's own as the
// last one. It cannot be undone, so failed steps are retried until they succeed.

import type { TenantDefinition } from '../../contracts/tenancy/definitions.ts';
import type { Json } from '../metadata/document-store.ts';
import type { WorkflowDefinition } from '../workflows/workflow.ts';

const kind = 'drop-tenant';

interface TenantDropping {
  find(name: string): TenantDefinition | undefined;
  /**
   * Resolves when all planes have applied the current state: before that, clients of the tenant may
   * still write.
   */
  publish(): Promise<void>;
  /** Resolves once nothing of it is left. It may have been done before. */
  dropData(tenant: TenantDefinition): Promise<void>;
  /** Removes some of its documents; true when none is left. */
  removeSome(name: string): Promise<boolean>;
}

type DropTenantInput = Pick<TenantDefinition, 'name' | 'number'>;

/** Arguments of `submit` and `submission`. */
export function dropTenantRequest({
  name,
  number,
}: DropTenantInput): [id: string, kind: string, input: Json] {
  // A number is never given twice, a name may be.
  return [dropTenantId({ number }), kind, { name, number }];
}

export function dropTenantId({ number }: Pick<TenantDefinition, 'number'>): string {
  return `${kind}-${number}`;
}

export function dropTenantWorkflow(tenants: TenantDropping): WorkflowDefinition {
  const found = (input: Json): TenantDefinition | undefined => {
    const { name, number } = input as unknown as DropTenantInput;
    const tenant = tenants.find(name);
    return tenant?.number === number ? tenant : undefined;
  };
  return {
    kind,
    resources: (input) => [`tenant-${(input as unknown as DropTenantInput).number}`],
    steps: [
      {
        name: 'disconnect',
        isPointOfNoReturn: true,
        run: () => tenants.publish(),
      },
      {
        name: 'delete-data',
        run: async ({ input }) => {
          const tenant = found(input);
          if (tenant !== undefined) await tenants.dropData(tenant);
        },
      },
      {
        name: 'delete-documents',
        run: async ({ input, signal }) => {
          for (let tenant = found(input); tenant !== undefined && !signal.aborted; ) {
            if (await tenants.removeSome(tenant.name)) return;
            tenant = found(input);
          }
        },
      },
    ],
  };
}
