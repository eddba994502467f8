"""`python -m sklearn_ical.cli`: the sklearn-ical command without an installed script."""

from sklearn_ical.cli import main

if __name__ == "__main__":
    main()
