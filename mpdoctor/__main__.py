"""`python -m mpdoctor`."""

from mpdoctor.cli.app import main

if __name__ == "__main__":
    main()
