import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/**
 * When a connection is cut: "before" the server gets what was said; when it was "sent", so that the server goes on
 * alone; or when the server has "answered", and nobody has heard it.
 */
export type Moment = 'before' | 'sent' | 'answered'

interface Cut {
  text: string
  moment: Moment
  /** how many more connections are cut so */
  left: number
}

/** A line to a server, which can be cut. */
export class Line {
  /** of a database, by the line */
  url = ''
  /** how many connections were cut */
  cuts = 0
  readonly #server = createServer({ allowHalfOpen: true }, (socket) => this.#join(socket))
  readonly #sockets = new Set<Socket>()
  readonly #target: number
  #cuts: Cut[] = []
  #last = Infinity
  #isSilent = false
  #isBlocked = false

  private constructor(target: number) {
    this.#target = target
  }

  static async to({ url }: { url: string }): Promise<Line> {
    const address = new URL(url)
    const line = new Line(Number(address.port))
    await once(line.#server.listen(0, '127.0.0.1'), 'listening')
    address.port = String((line.#server.address() as AddressInfo).port)
    line.url = address.href
    onTestFinished(() => line.end())
    return line
  }

  /**
   * Cuts the next connection, or so many of them, over which a text goes to the server; when that has been done, what
   * is told next.
   */
  cut(text: string, moment: Moment, times = 1): void {
    this.#cuts.push({ text, moment, left: times })
  }

  /** Cuts the next connection over which so many answers have come, behind the last. */
  cutBehind(answers: number): void {
    this.#last = answers
  }

  /** Lets nothing come back any more, whatever is sent. */
  silence(): void {
    this.#isSilent = true
  }

  /** Accepts further connections, and never answers them. */
  block(): void {
    this.#isBlocked = true
  }

  /** Is a line again, for those who connect anew. */
  mend(): void {
    this.#isSilent = false
    this.#isBlocked = false
    this.#cuts = []
    this.cutAll()
  }

  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  end(): void {
    this.cutAll()
    this.#server.close()
  }

  #join(near: Socket): void {
    if (this.#isBlocked) {
      this.#sockets.add(near.on('error', () => undefined))
      return
    }
    const far = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true })
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('error', () => other.destroy()).on('close', () => this.#sockets.delete(socket))
      socket.on('end', () => other.end())
    }
    near.on('close', () => far.end()) // after what is on its way
    let isAwaited = false
    let count = 0
    const answers = new Answers()
    near.once('data', (data) => answers.begin(data))
    near.on('data', (data) => {
      const moment = this.#momentOf(data)
      if (moment === 'before') {
        near.destroy()
        far.destroy()
        return
      }
      far.write(data)
      isAwaited ||= moment === 'answered'
      if (moment === 'sent') near.destroy()
    })
    far.on('data', (data) => {
      if (isAwaited && isReady(data)) near.destroy()
      const ends = answers.endsIn(data)
      const last = ends[this.#last - count - 1]
      count += ends.length
      if (!isAwaited && !this.#isSilent) near.write(data.subarray(0, last))
      if (last === undefined) return
      this.#last = Infinity
      this.cuts += 1
      near.end(() => near.destroy())
    })
  }

  #momentOf(data: Buffer): Moment | undefined {
    const cut = this.#cuts.find(({ left }) => left > 0)
    if (!cut || !data.includes(cut.text)) return undefined
    cut.left -= 1
    this.cuts += 1
    return cut.moment
  }
}

/**
 * What a server says up to where it waits for the client: the byte about TLS, what asks for a login, and each
 * ReadyForQuery; in however many packets.
 */
class Answers {
  #rest = Buffer.alloc(0)
  #isTlsAsked = false

  /** @param data the first that the client says */
  begin(data: Buffer): void {
    this.#isTlsAsked = data.length === 8
  }

  /** Where answers end in the next piece of what the server says. */
  endsIn(data: Buffer): number[] {
    const before = this.#rest.length
    const bytes = Buffer.concat([this.#rest, data])
    const ends: number[] = []
    let at = 0
    if (this.#isTlsAsked) {
      this.#isTlsAsked = false
      at = 1
      ends.push(at)
    }
    while (at + 5 <= bytes.length && at + 1 + bytes.readUInt32BE(at + 1) <= bytes.length) {
      const isEnd =
        bytes[at] === 'Z'.charCodeAt(0) ||
        (bytes[at] === 'R'.charCodeAt(0) && [10, 11].includes(bytes.readUInt32BE(at + 5)))
      at += 1 + bytes.readUInt32BE(at + 1)
      if (isEnd) ends.push(at)
    }
    this.#rest = bytes.subarray(at)
    return ends.map((end) => end - before)
  }
}

/** Whether an answer is over (https://www.postgresql.org/docs/current/protocol-message-formats.html, ReadyForQuery). */
function isReady(data: Buffer): boolean {
  return data.length >= 6 && data.readUInt32BE(data.length - 5) === 5 && data.at(-6) === 'Z'.charCodeAt(0)
}
