/**
 * Limits what a server may do to the driver's client. The driver trusts its server, and an address
 * may be wrong, or the server an attacker's. A message can announce any length, even before the
 * login, and the driver keeps it in memory until it is complete. It also keeps all rows of a
 * response until that is complete. And it sends the password in any form that the server requests.
 *
 * So this client reads the heads of the messages in each chunk before the driver gets the chunk.
 * When a server sends too much, the client ends the connection.
 */
import { isIP, type NetConnectOpts, Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { PlantsError } from '../../errors.js'
import { type CancelTarget, requestCancel } from './cancel.js'

const maxRowMiB = 16
/** The largest plant that this program stores has a tenth of this. */
export const maxRowBytes = maxRowMiB * 1_048_576

export function createTooLongError(server: string, unit: 'message' | 'row'): PlantsError {
  const largePlant = `a plant of more than ${maxRowMiB} MiB`
  const hint = `Check the address. If ${largePlant} is stored there, delete it with SQL`
  const message = `${server} sent a ${unit} of more than ${maxRowMiB} MiB`
  return new PlantsError('accessDenied', message, { hint })
}

const checkServerHint =
  'PostgreSQL never does that: check the server, and the proxies in front of it'

export function createTooManyRowsError(server: string): PlantsError {
  const message = `${server} sent more rows than requested`
  return new PlantsError('accessDenied', message, { hint: checkServerHint })
}

function createTooManyMessagesError(server: string): PlantsError {
  const message = `${server} sent more messages than a response has`
  return new PlantsError('accessDenied', message, { hint: checkServerHint })
}

/**
 * A server sends this message after the login. A request to cancel a statement contains both
 * numbers.
 */
interface BackendKeyData {
  processID: number
  secretKey: number
}

/**
 * Ends the connection when a message is longer than 16 MiB, and when a response has more rows than
 * its statement can return. No row of a plant has 16 MiB.
 */
export class LimitedClient extends pg.Client {
  readonly #limits = new ResponseLimits()
  readonly #checkChunk = (chunk: Buffer): void => {
    const excess = this.#limits.findExcess(chunk)
    if (excess !== undefined) this.connection.stream.destroy(this.#createExcessError(excess))
  }
  #cancelTarget: CancelTarget | undefined

  constructor(config?: pg.ClientConfig) {
    super(config)
    // With TLS, the driver replaces the stream after `connect`, and reports `sslconnect`.
    const startEvent = config?.ssl ? 'sslconnect' : 'connect'
    this.connection.once(startEvent, () => void this.connection.stream.on('data', this.#checkChunk))
    const tls = this.#findTlsOptions(config)
    this.connection.once('backendKeyData', ({ processID, secretKey }: BackendKeyData) => {
      this.#cancelTarget = { server: this.#findServer(), tls, processId: processID, secretKey }
    })
  }

  /** Call this before dropping a connection whose statement the server has not answered. */
  async cancelStatement(): Promise<void> {
    const isLost = this.connection.stream.destroyed
    if (this.#cancelTarget !== undefined && !isLost) await requestCancel(this.#cancelTarget)
  }

  #findServer(): NetConnectOpts {
    const { host, port } = this
    if (host.startsWith('/')) return { path: `${host}/.s.PGSQL.${port}` }
    const { stream } = this.connection
    const address = stream instanceof Socket ? stream.remoteAddress : undefined
    return { host: address ?? host, port }
  }

  /** Returns the TLS options of the driver's own connection. */
  #findTlsOptions({ ssl }: pg.ClientConfig = {}): ConnectionOptions | undefined {
    if (typeof ssl !== 'object') return undefined
    const { host } = this
    // The driver makes `key` not enumerable, so that the spread does not copy it.
    const options: ConnectionOptions = { ...ssl, key: ssl.key, host }
    if (isIP(host) === 0) options.servername = host
    return options
  }

  /** @param maxRows the largest number of rows that the next statements together return */
  limitRows(maxRows: number): void {
    this.#limits.beginResponse(maxRows)
  }

  #createExcessError(excess: Excess): PlantsError {
    switch (excess) {
      case 'length':
        return createTooLongError(this.host, 'message')
      case 'rows':
        return createTooManyRowsError(this.host)
      case 'messages':
        return createTooManyMessagesError(this.host)
    }
  }

  /** pg-copy-streams reads the stream itself, and keeps nothing, so it needs no limit. */
  stopLimiting(): void {
    this.connection.stream.off('data', this.#checkChunk)
  }
}

/**
 * What a server sent too much of: a message is too long, or a response has too many rows or
 * messages.
 */
type Excess = 'length' | 'rows' | 'messages'

const dataRow = 'D'.charCodeAt(0)

/**
 * Notices (N), parameters (S) and notifications (A) may come at any time. The driver keeps none of
 * them, so they are not counted.
 */
const uncountedMessages = Array.from('NSA', (letter) => letter.charCodeAt(0))

/** A hundred statements are sent together at most, and the response to each has two messages. */
const maxOtherMessages = 1000

/**
 * Reads the heads of messages. A head has a letter for the type, and then four bytes for the
 * length, which counts these four, but not the letter
 * (https://www.postgresql.org/docs/current/protocol-overview.html#PROTOCOL-MESSAGE-CONCEPTS).
 */
class ResponseLimits {
  readonly #head = Buffer.alloc(5)
  #headLength = 0
  #remainingBodyBytes = 0
  #remainingRows = 0
  #remainingMessages = maxOtherMessages

  beginResponse(maxRows: number): void {
    this.#remainingRows = maxRows
    this.#remainingMessages = maxOtherMessages
  }

  findExcess(chunk: Buffer): Excess | undefined {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#remainingBodyBytes > 0) {
        const skippedBytes = Math.min(this.#remainingBodyBytes, chunk.length - offset)
        this.#remainingBodyBytes -= skippedBytes
        offset += skippedBytes
        continue
      }
      const copiedBytes = chunk.copy(this.#head, this.#headLength, offset)
      this.#headLength += copiedBytes
      offset += copiedBytes
      if (this.#headLength < this.#head.length) continue
      this.#headLength = 0
      const excess = this.#countMessage()
      if (excess !== undefined) return excess
    }
    return undefined
  }

  #countMessage(): Excess | undefined {
    const letter = this.#head.readUInt8()
    const length = this.#head.readUInt32BE(1)
    // A length counts its own four bytes. So this server is not PostgreSQL if the length is below
    // 4.
    if (length < 4 || length > maxRowBytes) return 'length'
    this.#remainingBodyBytes = length - 4
    if (letter === dataRow) {
      this.#remainingRows -= 1
      return this.#remainingRows < 0 ? 'rows' : undefined
    }
    if (uncountedMessages.includes(letter)) return undefined
    this.#remainingMessages -= 1
    return this.#remainingMessages < 0 ? 'messages' : undefined
  }
}

/**
 * Logs in only with SCRAM. This class is for connections that others could read. They could read a
 * password there, and use its MD5 hash. SCRAM sends neither.
 */
export class ScramOnlyClient extends LimitedClient {
  constructor(config?: pg.ClientConfig) {
    super(config)
    for (const request of ['authenticationCleartextPassword', 'authenticationMD5Password'])
      this.connection.prependListener(request, () => {
        const message = `${this.host} requests the password over a connection that others could read`
        const hint = 'Let it use scram-sha-256, or verify its certificate: sslmode=verify-full'
        this.connection.stream.destroy(new PlantsError('unauthorized', message, { hint }))
      })
  }
}
