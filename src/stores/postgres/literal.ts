/** A text as a literal of SQL that reads the same whatever the server takes a backslash for. */
export function literal(text: string): string {
  if (text.includes('\0')) throw new Error('U+0000 would end the statement')
  return `E'${text.replace(/['\\]/g, '$&$&')}'`
}

/** A name of a role or a database, as SQL quotes it. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}

/** Bytes as a literal of the type bytea. */
export function bytesLiteral(bytes: Uint8Array): string {
  return `${literal(`\\x${Buffer.from(bytes).toString('hex')}`)}::bytea`
}

/** Texts, some of which are not there, as a literal of the type text[]. */
export function textsLiteral(texts: (string | undefined)[]): string {
  return `${literal(`{${texts.map(element).join()}}`)}::text[]`
}

/** Ids as a literal of the type bigint[]. */
export function idsLiteral(ids: bigint[]): string {
  return `'{${ids.join()}}'::bigint[]`
}

/** In quotes, because a bare one may read NULL, be empty or lose its spaces. */
function element(text: string | undefined): string {
  return text === undefined ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`
}
