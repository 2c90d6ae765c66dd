// Charges of the InfluxDB plane for background work, except merging.

import type { Meter } from '../../request-units/meter.ts';
import type { SeriesPricer } from '../../request-units/series-pricer.ts';
import type { SeriesBackgroundWork } from '../../storage-node/background-work.ts';
import { ownerOf } from '../../storage-node/backup/shadow.ts';

/** Nothing is charged while it is not `isOn`. */
export function backgroundOf(
  meter: Meter,
  pricer: SeriesPricer,
  isOn: () => boolean,
): SeriesBackgroundWork {
  const charge =
    (what: 'chargeCopy' | 'chargeRestore'): SeriesBackgroundWork['copied'] =>
    (databases) => {
      if (!isOn()) return;
      for (const { database, bytes } of databases) {
        if (bytes > 0) pricer[what](meter.account(ownerOf(database).tenant), bytes);
      }
    };
  return { copied: charge('chargeCopy'), restored: charge('chargeRestore') };
}
