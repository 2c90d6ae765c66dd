// Credentials of a request.

export type Credentials =
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  /** A token of its own, as programs have. */
  | { readonly kind: 'token'; readonly token: string };
