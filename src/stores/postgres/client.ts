/**
 * The driver's client, with limits on what a server may do to it. The driver trusts its server: it
 * keeps each message until it is complete, whatever length that announces, even before the login,
 * and sends the password in whatever form it is asked for.
 */
import { isIP, type NetConnectOpts, Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'
import pg from 'pg'
import { PlantsError } from '../../errors.js'
import { type CancelTarget, requestCancel } from './cancel.js'

const maxRowMiB = 16
/** A plant of this program has a tenth of it at most. */
export const maxRowBytes = maxRowMiB * 1_048_576

export function createTooLongError(server: string, what: 'message' | 'row'): PlantsError {
  const largePlant = `a plant of more than ${maxRowMiB} MiB`
  const hint = `Check the address. If ${largePlant} is stored there, delete it with SQL`
  const message = `${server} sent a ${what} of more than ${maxRowMiB} MiB`
  return new PlantsError('inaccessible', message, { hint })
}

/** What a server tells of a connection, so that a statement on it can be canceled. */
interface BackendKeyData {
  processID: number
  secretKey: number
}

/** Ends the connection when a message is longer than 16 MiB: no row of a plant is. */
export class LimitedClient extends pg.Client {
  readonly #watch: (chunk: Buffer) => void
  #cancelTarget: CancelTarget | undefined

  constructor(config?: pg.ClientConfig) {
    super(config)
    const lengths = new MessageLengths()
    this.#watch = (chunk) => {
      if (!lengths.exceed(chunk)) return
      this.connection.stream.destroy(createTooLongError(this.host, 'message'))
    }
    // With TLS, the stream is another one from then on.
    const start = config?.ssl ? 'sslconnect' : 'connect'
    this.connection.once(start, () => void this.connection.stream.on('data', this.#watch))
    const tls = this.#findTlsOptions(config)
    this.connection.once('backendKeyData', ({ processID, secretKey }: BackendKeyData) => {
      this.#cancelTarget = { server: this.#findServer(), tls, processId: processID, secretKey }
    })
  }

  /** Call it before a connection is dropped whose statement the server has not answered. */
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

  /** Returns the options with which the driver makes its own connection. */
  #findTlsOptions({ ssl }: pg.ClientConfig = {}): ConnectionOptions | undefined {
    if (typeof ssl !== 'object') return undefined
    const { host } = this
    // The driver hides the key from what copies the options.
    const options: ConnectionOptions = { ...ssl, key: ssl.key, host }
    if (isIP(host) === 0) options.servername = host
    return options
  }

  /** For pg-copy-streams, which reads the stream itself, and passes on each chunk as it comes. */
  endLimit(): void {
    this.connection.stream.off('data', this.#watch)
  }
}

/** Reads the lengths of messages: each has a letter, and then its length without the letter. */
class MessageLengths {
  readonly #head = Buffer.alloc(5)
  #headLength = 0
  #bytesLeft = 0

  /** Returns whether a message begins that is longer than allowed, or has an impossible length. */
  exceed(chunk: Buffer): boolean {
    let offset = 0
    while (offset < chunk.length) {
      if (this.#bytesLeft > 0) {
        const skipped = Math.min(this.#bytesLeft, chunk.length - offset)
        this.#bytesLeft -= skipped
        offset += skipped
        continue
      }
      const copied = chunk.copy(this.#head, this.#headLength, offset)
      this.#headLength += copied
      offset += copied
      if (this.#headLength < this.#head.length) continue
      this.#headLength = 0
      const length = this.#head.readUInt32BE(1)
      if (length < 4 || length > maxRowBytes) return true
      this.#bytesLeft = length - 4
    }
    return false
  }
}

/** Logs in with SCRAM alone, where others could read a password or its MD5 hash. */
export class SecretiveClient extends LimitedClient {
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
