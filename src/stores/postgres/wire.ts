import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { Grammar } from './grammar.js'
import type { LoginRules } from './login-methods.js'

/**
 * What the driver takes for its socket. It lets only whole messages through that the grammar allows, because the driver trusts whatever it
 * reads: others would end the process, keep it busy for ever or fill its memory. Any such message ends the connection.
 */
export class Wire extends Duplex {
  readonly #socket: Socket
  readonly #grammar: Grammar
  #pieces: Buffer[] = []
  #size = 0
  /** bytes until there is something to look at */
  #wanted = headSize

  constructor(socket: Socket, rules: LoginRules) {
    super()
    this.#grammar = new Grammar(rules)
    this.#socket = socket
    socket.on('data', (piece: Buffer) => this.#take(piece))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  /** Has the server ask for the rows of a copy once. */
  expectCopy(): void {
    this.#grammar.expectCopy()
  }

  /** rows that the server has stored of the last copy, once it has said so */
  get copied(): number | undefined {
    return this.#grammar.copied
  }

  /** as the driver asks for it */
  get readyState(): string {
    return this.#socket.readyState
  }

  setKeepAlive(isOn: boolean, delay: number): void {
    this.#socket.setKeepAlive(isOn, delay)
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _: unknown, done: () => void): void {
    this.#grammar.noteSent(chunk)
    if (this.#socket.write(chunk)) done()
    else this.#socket.once('drain', done)
  }

  override _final(done: () => void): void {
    this.#socket.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#pieces = []
    this.#socket.destroy()
    done(error)
  }

  #take(piece: Buffer): void {
    if (this.destroyed) return
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size < this.#wanted) return
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#size)
    try {
      const end = this.#pass(bytes)
      this.#pieces = end < bytes.length ? [bytes.subarray(end)] : []
      this.#size = bytes.length - end
    } catch (error) {
      this.destroy(error instanceof Error ? error : new Error(String(error)))
    }
  }

  /** Hands the whole messages on, and gives where they end. */
  #pass(bytes: Buffer): number {
    let from = 0
    let at = 0
    this.#wanted = headSize
    while (bytes.length - at >= headSize) {
      const length = this.#grammar.lengthOf(bytes[at] ?? 0, bytes.readUInt32BE(at + 1))
      if (bytes.length - at < length) {
        this.#wanted = length
        break
      }
      if (!this.#grammar.read(bytes.subarray(at, at + length))) {
        this.#hand(bytes.subarray(from, at))
        from = at + length
      }
      at += length
    }
    this.#hand(bytes.subarray(from, at))
    return at
  }

  #hand(messages: Buffer): void {
    if (messages.length > 0 && !this.push(messages)) this.#socket.pause()
  }
}

/** a letter, and a length */
const headSize = 5
