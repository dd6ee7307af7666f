/**
 * Returns true for a string that can be the name of a saved store. Wherever an address is expected,
 * such a string is a name: `--store garden` means the saved store, and a file of that name is
 * `./garden`. `local` is the default store, so nothing can be saved under it.
 */
export function isStoreName(value: string): boolean {
  return /^[a-z\d][\w-]{0,63}$/i.test(value) && value !== 'local'
}
