/** An error that whoever runs the build can fix. */
export class BuildError extends Error {
  constructor(message, hint, exitCode = 1) {
    super(message)
    this.hint = hint
    this.exitCode = exitCode
  }
}
