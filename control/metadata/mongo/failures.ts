// Translates the driver's errors to a store's errors.

import { MongoError, MongoServerError, MongoServerSelectionError } from 'mongodb';
import { MetadataUnavailable } from '../document-store.ts';

/** Codes of servers that have no change streams, in any of their words. */
const streamCodes = new Set<unknown>([
  59, // CommandNotFound
  72, // InvalidOptions
  115, // CommandNotSupported
  238, // NotImplemented
  40324, // unrecognised pipeline stage
  40573, // only on replica sets
]);

export function isDuplicate(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === 11000;
}

export function lacksStreams(error: unknown): boolean {
  return error instanceof MongoServerError && streamCodes.has(error.code);
}

/** The operation may have been executed, or may still be. */
export function isInDoubt(error: unknown): boolean {
  return error instanceof MongoError && !(error instanceof MongoServerSelectionError);
}

/** An error of the driver as `MetadataUnavailable`; any other as it is. */
export function inOurWords(error: unknown): Error {
  if (!(error instanceof MongoError)) return error as Error;
  const isLogin = error instanceof MongoServerError && error.code === 18;
  const told = isLogin ? 'it refuses the login' : error.message;
  const message = `the metadata store does not answer: ${told}`;
  return new MetadataUnavailable(message, 'none', { cause: error });
}

/** As `inOurWords`, for a read: nothing was written in any case. */
export function ofReading(error: unknown): Error {
  const ours = inOurWords(error);
  if (!(ours instanceof MetadataUnavailable) || ours.outcome === 'none') return ours;
  return new MetadataUnavailable(ours.message, 'none', { cause: ours.cause });
}
