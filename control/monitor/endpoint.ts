/** Where a listener can be reached, as told to people and to other programs. */
export interface Endpoint {
  /** 'redis', 'admin'. */
  name: string;
  url: string;
}
